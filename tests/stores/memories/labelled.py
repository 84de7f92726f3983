"""A thousand facts, and requests that one of them answers: with its own words, in other forms, and misspelt."""

FIRST = ("Marta", "Joaquim", "Ingrid", "Teodor", "Yasmin", "Bertil", "Rosalind", "Kasimir", "Philippa", "Evander")
LAST = (
    *("Sousa", "Lindqvist", "Okafor", "Brandt", "Castellano"),
    *("Whitlock", "Petrenko", "Haugland", "Delacroix", "Montgomery"),
)
HARBOURS = ("Porto", "Bergen", "Stralsund", "Galway", "Trieste", "Gdynia", "Aarhus", "Honfleur", "Whitby", "Oban")
TRADES = (
    *("sailmaker", "pilot", "cartographer", "shipwright", "lighthouse keeper"),
    *("harbourmaster", "diver", "ropemaker", "ferryman", "chandler"),
)
PEOPLE = [(first, last) for first in FIRST for last in LAST]


def analysis_of(number: int, first: str, last: str) -> dict[str, str]:
    """Ten of one person, by their kind."""
    named = f"{first} {last}"
    return {
        "home": f"{named} lives in {HARBOURS[number % 10]}.",
        "trade": f"{named} works as a {TRADES[number // 10]}.",
        "berth": f"The boat of {named} is moored at berth {number + 1}.",
        "allergy": f"{named} is allergic to {('mussels', 'walnuts', 'penicillin', 'celery')[number % 4]}.",
        "birthday": f"{named} was born on the {number % 28 + 1}. of {('March', 'June', 'October')[number % 3]}.",
        "drink": f"{named} drinks {('coffee', 'tea', 'cocoa')[number % 3]} at breakfast.",
        "invoice": f"Invoices for {named} are sent by {('post', 'courier', 'mail')[number % 3]}.",
        "language": f"{named} speaks {('Norwegian', 'Polish', 'Portuguese', 'Danish')[number % 4]} at home.",
        "deploy": f"{named} deploys the booking service on {('Mondays', 'Tuesdays', 'Fridays')[number % 3]}.",
        "dog": f"The dog of {named} is called {('Biscuit', 'CachedPrefix', 'Pepper', 'Tar')[number % 4]}.",
    }


ANALYSIS = [fact for number, named in enumerate(PEOPLE) for fact in analysis_of(number, *named).values()]


def misspelt(word: str) -> str:
    """As fast fingers write it: the two operations in its middle change places."""
    middle = len(word) // 2
    return word[: middle - 1] + word[middle] + word[middle - 1] + word[middle + 1 :]


def _asked(kind: str, first: str, last: str) -> dict[str, str]:
    """Requests for one fact, by how they are written."""
    own, other = {
        "home": ("Where does {0} {1} live?", "Which town is the living place of {0} {1}?"),
        "trade": ("What does {0} {1} work as?", "{0} {1}'s working life: which trade?"),
        "berth": ("At which berth is the boat of {0} {1} moored?", "{0} {1}: mooring, berths?"),
        "allergy": ("What is {0} {1} allergic to?", "Any allergies of {0} {1}?"),
        "drink": ("What does {0} {1} drink at breakfast?", "{0} {1}'s breakfasts, with which drinks?"),
    }[kind]
    return {
        "own words": own.format(first, last),
        "other forms": other.format(first, last),
        "misspelt": own.format(misspelt(first), misspelt(last)),
    }


QUESTIONS = {
    way: {
        request[way]: analysis_of(number, *named)[kind]
        for number, named in enumerate(PEOPLE)
        if number % 19 == 0
        for kind in ("home", "trade", "berth", "allergy", "drink")
        for request in [_asked(kind, *named)]
    }
    for way in ("own words", "other forms", "misspelt")
}
"""By how they are written: thirty requests, each with the fact that should come first."""
