"""The positive list: programs and flags that are known to change nothing, and what they read.

The notation is that of `shell_flags`; git has a file of its own, `shell_git`.
"""

from collections.abc import Callable

from activities.tools.shell_flags import Operands, Program, Proof, flags, prove, read_arguments
from activities.tools.shell_git import prove_git
from activities.tools.shell_scripts import find_operands, sed_script_is_plain


def _p(
    short: str = "", long: str = "", operands: Operands = "paths", most: int = 1000, *, digits: bool = False
) -> Program:
    return Program(flags(short, long), operands, most, digits)


_GREP = _p(
    "abcEFGhHiIlLnoPqrsTUvVwxyzZ A= B= C= e= f@ m= d= D=",
    "regexp= file@ ignore-case no-ignore-case invert-match word-regexp line-regexp count color? colour?"
    " files-without-match"
    " files-with-matches max-count= only-matching quiet silent no-messages byte-offset with-filename no-filename label="
    " line-number initial-tab null after-context= before-context= context= text binary-files= exclude= exclude-from@"
    " exclude-dir= include= recursive extended-regexp fixed-strings basic-regexp perl-regexp null-data"
    " help version line-buffered",
    "pattern",
    digits=True,
)
_SUM = _p("bt z", "binary text tag zero")
_TEXT_ONLY = _p(operands="text")

PROGRAMS: dict[str, Program] = {
    "ls": _p(
        "aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1 I= T= w=",
        "all almost-all author escape block-size= ignore-backups color? directory dired classify? file-type format="
        " full-time group-directories-first no-group human-readable si dereference dereference-command-line hide="
        " hyperlink?"
        " indicator-style= inode ignore= literal hide-control-chars show-control-chars quote-name quoting-style="
        " recursive"
        " reverse size sort= time= time-style= tabsize= width= zero help version",
    ),
    "cat": _p(
        "AbeEnstTuv", "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting help version"
    ),
    "head": _p("qvz n= c=", "lines= bytes= quiet silent verbose zero-terminated help version", digits=True),
    "tail": _p("qvz n= c=", "lines= bytes= quiet silent verbose zero-terminated help version", digits=True),
    "tac": _p("br s=", "before regex separator="),
    "nl": _p("p b= d= f= h= i= l= n= s= v= w=", "body-numbering= number-format= number-width="),
    "wc": _p("clmLw", "bytes chars lines words max-line-length total= help version"),
    "pwd": _p("LP", "logical physical", "none"),
    "stat": _p("fLt c=", "dereference file-system format= printf= terse"),
    "file": _p(
        "bhiLkNnprs0 F= e=", "brief mime mime-type mime-encoding dereference no-dereference separator= keep-going"
    ),
    "du": _p(
        "0abcDhHklLmPsSx d= t= B= X@",
        "all apparent-size bytes total dereference-args max-depth= human-readable inodes count-links summarize"
        " one-file-system"
        " exclude= exclude-from@ si separate-dirs threshold= time? time-style= null block-size=",
    ),
    "df": _p(
        "ahHikilPT t= x= B=",
        "all human-readable si inodes local portability print-type type= exclude-type= total output? sync",
    ),
    "date": _p("uR I? d= r@", "date= iso-8601? rfc-email rfc-3339= reference@ utc universal help version", "plus"),
    "whoami": _p(long="help version", operands="none"),
    "id": _p("agGnruzZ", "context group groups name real user zero help version", "text"),
    "groups": _TEXT_ONLY,
    "uname": _p("asnrvmpio", "all kernel-name nodename kernel-release kernel-version machine operating-system", "none"),
    "arch": _p(operands="none"),
    "nproc": _p(long="all", operands="none"),
    "hostname": _p("fsdiI", "fqdn short ip-address all-ip-addresses", "none"),
    "uptime": _p("ps", "pretty since", "none"),
    "free": _p("bkmghtw", "human total wide", "none"),
    "basename": _p("az s=", "multiple suffix= zero", "text"),
    "dirname": _p("z", "zero", "text"),
    "realpath": _p(
        "emLPqsz", "canonicalize-existing canonicalize-missing logical physical quiet strip relative-to@ relative-base@"
    ),
    "readlink": _p(
        "femnqsvz", "canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero"
    ),
    "cut": _p(
        "nsz b= c= d= f=",
        "bytes= characters= delimiter= fields= complement only-delimited output-delimiter= zero-terminated",
    ),
    "tr": _p("cCdst", "complement delete squeeze-repeats truncate-set1", "text"),
    "uniq": _p(
        "cdDiuz f= s= w=",
        "count repeated all-repeated? skip-fields= group? ignore-case skip-chars= unique zero-terminated check-chars=",
        most=1,
    ),
    "sort": _p(
        "bdfgiMhnRrVcCmsuz k= t= S=",
        "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort"
        " human-numeric-sort numeric-sort random-sort reverse sort= version-sort check? merge key= field-separator="
        " stable"
        " unique zero-terminated parallel= buffer-size=",
    ),
    "comm": _p("123z", "check-order nocheck-order output-delimiter= total zero-terminated"),
    "join": _p("iz 1= 2= a= e= j= o= t= v=", "ignore-case header"),
    "paste": _p("sz d=", "serial delimiters= zero-terminated"),
    "fold": _p("bs w=", "bytes spaces width="),
    "column": _p("tnxe s= c= o= N=", "table separator= output-width="),
    "rev": _p(),
    "diff": _p(
        "abBcdeEHilnNpqrstTuvwyZ U= C= I= L= W= x= X@ F= S=",
        "normal brief report-identical-files context? unified? ed rcs side-by-side width= left-column"
        " suppress-common-lines"
        " show-c-function show-function-line= label= expand-tabs initial-tab recursive no-dereference new-file"
        " unidirectional-new-file ignore-file-name-case exclude= exclude-from@ starting-file= from-file@ to-file@"
        " ignore-case"
        " ignore-tab-expansion ignore-trailing-space ignore-space-change ignore-all-space ignore-blank-lines"
        " ignore-matching-lines= text strip-trailing-cr minimal speed-large-files color? help version",
    ),
    "cmp": _p("bls i= n=", "print-bytes ignore-initial= verbose bytes= quiet silent"),
    "grep": _GREP,
    "egrep": _GREP,
    "fgrep": _GREP,
    "rg": _p(
        "abcFHhIilNnoPpqSsUuvwx0. A= B= C= E= e= f@ g= j= M= m= t= T= r= d=",
        "after-context= before-context= context= count count-matches case-sensitive ignore-case smart-case"
        " fixed-strings regexp="
        " file@ files files-with-matches files-without-match glob= iglob= hidden no-hidden no-ignore no-ignore-vcs"
        " line-number no-line-number line-regexp word-regexp max-columns= max-count= max-depth= max-filesize= multiline"
        " multiline-dotall only-matching pcre2 pretty quiet replace= sort= sortr= stats text threads= trim type="
        " type-not="
        " type-list invert-match with-filename no-filename heading no-heading json vimgrep color= colors= column"
        " no-config"
        " no-messages null passthru unrestricted binary no-follow one-file-system encoding= crlf version",
        "pattern",
    ),
    "tree": _p(
        "adfilqNQpsughDFrtcUvSAnCJX L= P= I=",
        "noreport charset= filelimit= dirsfirst filesfirst sort= du si prune gitignore matchdirs ignore-case"
        " timefmt= inodes device",
    ),
    "find": _p(),
    "sed": _p("nErsuz e=", "quiet silent regexp-extended separate unbuffered null-data expression= posix sandbox"),
    "jq": _p(
        "aceCjMnrRsS",
        "compact-output null-input raw-input raw-output slurp sort-keys color-output monochrome-output ascii-output"
        " tab indent="
        " exit-status join-output raw-output0 unbuffered stream seq",
        "jq",
    ),
    "od": _p("bcdfiloxsav A= j= N= t= w?", "address-radix= skip-bytes= read-bytes= format= width?"),
    "xxd": _p("abeiupE c= g= l= o= s=", most=1),
    "hexdump": _p("bcCdovx n= s=", "canonical length= skip="),
    "strings": _p("aw n= t= e=", "all bytes= radix= encoding="),
    "base64": _p("di w=", "decode ignore-garbage wrap="),
    "md5sum": _SUM,
    "sha1sum": _SUM,
    "sha256sum": _SUM,
    "sha512sum": _SUM,
    "cksum": _p(),
    "true": _TEXT_ONLY,
    "false": _TEXT_ONLY,
    ":": _TEXT_ONLY,
    "exit": _p(operands="text", most=1),
    "sleep": _p(operands="text"),
    "seq": _p("w f= s=", "equal-width format= separator=", "text"),
    "printf": _p(operands="text"),
    "which": _p("as", "all", "text"),
    "type": _p("aftpP", operands="text"),
    "ps": _p("AaefFlwx u= o= p= C=", "sort= no-headers forest", "none"),
}
VERSIONS = {
    program: frozenset({"--version", *extra.split()})
    for program, extra in {
        "python": "-V -VV", "python3": "-V -VV", "pip": "-V", "pip3": "-V", "node": "-v", "npm": "-v", "ruff": "-V",
        "java": "-version", "git": "version", "make": "-v",
        "gcc": "", "g++": "", "clang": "", "cmake": "", "docker": "-v", "ruby": "-v", "perl": "-v", "php": "-v",
        "bash": "", "rg": "-V", "jq": "-V", "curl": "-V", "uv": "-V", "tsc": "-v", "mypy": "-V",
        "sed": "", "awk": "", "tar": "", "find": "", "sort": "", "tree": "",
    }.items()
}  # fmt: skip
"""Not here: programs that run what a file of the workspace names, also for their version (cargo and rustc by
rust-toolchain.toml, go by go.mod, yarn by .yarnrc.yml, pnpm by package.json, pytest by conftest.py)."""

EDITORS: dict[str, Program] = {
    "mkdir": _p("pv m=", "parents verbose mode="),
    "touch": _p("acm d= t= r@", "no-create date= reference@"),
    "rm": _p("firvdR", "force recursive verbose dir interactive?"),
    "rmdir": _p("pv", "parents verbose ignore-fail-on-non-empty"),
    "mv": _p("fnvuiT t@", "force no-clobber verbose update? no-target-directory target-directory@"),
    "cp": _p("fnpvuiTdP t@", "force no-clobber verbose update? preserve? no-target-directory target-directory@"),
    "sed": _p("nErsuz e= i?", "quiet silent regexp-extended separate unbuffered null-data expression= in-place?"
        " posix sandbox"),
}  # fmt: skip
"""Programs whose only effect is on the paths that they name: what `accept_edits` may do unasked in the workspace."""


def prove_read_only(words: tuple[str, ...]) -> Proof | None:
    """What the command reads, when it is proven to change nothing; None when it is not. Words are after quoting."""
    program, arguments = words[0], words[1:]
    if len(arguments) == 1 and arguments[0] in VERSIONS.get(program, ()):
        return Proof()
    if program == "echo":
        return Proof()
    special: Callable[[tuple[str, ...]], Proof | None] | None = _SPECIAL.get(program)
    if special is not None:
        return special(arguments)
    known = PROGRAMS.get(program)
    return None if known is None else prove(known, arguments)


def prove_edit(words: tuple[str, ...]) -> Proof | None:
    """What the command reads and writes, when it is proven to change nothing else; None when it is not."""
    known = EDITORS.get(words[0])
    if known is None:
        return None
    read = read_arguments(known, words[1:])
    if read is None:
        return None
    operands, values = read.operands, read.paths
    if words[0] == "sed":
        return _sed(words[1:], known)
    if words[0] in ("cp", "mv"):
        return _moved(words[0], operands, values)
    return Proof((), operands + values)


def _moved(program: str, operands: tuple[str, ...], into: tuple[str, ...]) -> Proof | None:
    """`cp` without -r and `mv`. The target may be a folder: what lies in it under the source's name is written too."""
    if len(operands) + len(into) < 2:
        return None
    target, sources = (into[-1], operands) if into else (operands[-1], operands[:-1])
    landing = tuple(f"{target}/{source.rstrip('/').rsplit('/', 1)[-1]}" for source in sources)
    written = (target, *landing)
    return Proof(sources, written) if program == "cp" else Proof((), sources + written)


def _find(arguments: tuple[str, ...]) -> Proof | None:
    reads = find_operands(arguments)
    return None if reads is None else Proof(reads, here=not reads)


def _sed(arguments: tuple[str, ...], program: Program = PROGRAMS["sed"]) -> Proof | None:
    read = read_arguments(program, arguments)
    if read is None:
        return None
    scripts = [value for name, value in read.values if name in ("e", "expression")]
    files = read.operands if scripts else read.operands[1:]
    scripts = scripts or list(read.operands[:1])
    if not scripts or not all(sed_script_is_plain(script) for script in scripts):
        return None
    if not read.given & {"i", "in-place"}:
        return Proof(files)
    if any("/" in value or "*" in value for name, value in read.values if name in ("i", "in-place")):
        return None
    return Proof((), files)


def _printf(arguments: tuple[str, ...]) -> Proof | None:
    return None if arguments and arguments[0].startswith("-") and arguments[0] != "--" else Proof()


def _test(arguments: tuple[str, ...]) -> Proof | None:
    """`test`: only forms that evaluate nothing; `-v` and arithmetic would run what stands in a subscript."""
    left = arguments[1:] if arguments[:1] == ("!",) else arguments
    if len(left) == 2 and left[0] in ("-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h"):
        return Proof((left[1],))
    plain = (len(left) == 2 and left[0] in ("-n", "-z")) or (len(left) == 3 and left[1] in ("=", "!="))
    return Proof() if plain else None


def _command(arguments: tuple[str, ...]) -> Proof | None:
    return Proof() if arguments[:1] in (("-v",), ("-V",)) else None


def _ps(arguments: tuple[str, ...]) -> Proof | None:
    if any("env" in argument.lower() for argument in arguments):
        return None  # `-o environ` shows the environment of each process, the worker's among them
    return Proof() if arguments in (("aux",), ("ax",)) else prove(PROGRAMS["ps"], arguments)


def _pip(arguments: tuple[str, ...]) -> Proof | None:
    return Proof() if arguments[:1] in (("list",), ("show",), ("freeze",)) and _bare(arguments[1:]) else None


def _bare(arguments: tuple[str, ...]) -> bool:
    return not any(argument.startswith("-") for argument in arguments)


_SPECIAL: dict[str, Callable[[tuple[str, ...]], Proof | None]] = {
    "find": _find,
    "sed": _sed,
    "printf": _printf,
    "test": _test,
    "command": _command,
    "ps": _ps,
    "pip": _pip,
    "pip3": _pip,
    "git": prove_git,
}
