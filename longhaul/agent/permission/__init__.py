"""Permission decides who may do what: rules, the facts that an activity must find out, and the decision table."""
