"""Fixed texts that stand in a context in the place of others. They are part of the record: never reword one."""

MASK = "[This result was left out to make room. Ask for it with the recall tool if it is needed.]"
