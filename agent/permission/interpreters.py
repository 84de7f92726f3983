"""Programs that run what they are given: a rule that allows one of them allows everything."""

from longhaul.agent.plain.word_sets import names

INTERPRETERS = names(
    "sh bash dash zsh ksh ash fish csh tcsh python python2 python3 pypy pypy3 node nodejs deno bun perl ruby php lua"
    " Rscript osascript pwsh tclsh"
)
"""Programs whose arguments or input are code."""
