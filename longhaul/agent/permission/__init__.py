"""Permission decides who may do what: rules, the analysis that an activity must find out, and the decision table."""
