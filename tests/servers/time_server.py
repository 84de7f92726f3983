"""Temporal's time-skipping test server, from its Java packages: the SDK's own download is not to be had everywhere."""

import shutil
from pathlib import Path

from longhaul.starter.dev_server.processes import run_within
from longhaul.starter.dev_server.progress import Progress
from longhaul.starter.dev_server.temporal_cli import Say, cache_directory
from tests.servers.local import ServerUnavailable

VERSION = "1.32.0"
FETCH_SECONDS = 300.0
POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>here</groupId><artifactId>here</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>io.temporal</groupId><artifactId>temporal-test-server</artifactId><version>{VERSION}</version>
  </dependency></dependencies>
</project>
"""


def find_time_server(say: Say) -> Path:
    """A program that takes a port, as the SDK starts it. Raises ServerUnavailable."""
    home = cache_directory() / f"temporal-test-server-{VERSION}"
    program = home / "temporal-test-server"
    if program.exists():
        return program
    if missing := [name for name in ("java", "mvn") if shutil.which(name) is None]:
        raise ServerUnavailable(f"{missing[0]} is not on PATH")
    say("fetching Temporal's test server with Maven")
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    (home / "pom.xml").write_text(POM)
    fetch = ["mvn", "-q", "-B", "-f", str(home / "pom.xml"), "dependency:copy-dependencies", "-DoutputDirectory=lib"]
    if complaint := run_within(FETCH_SECONDS, fetch, {}, Progress(say, "fetching it")):
        raise ServerUnavailable(f"Maven did not fetch it: {complaint}")
    # Last, so that half a server is never taken for a whole one.
    script = home / "started"
    script.write_text(f'#!/bin/sh\nexec java -Xmx512m -cp "{home}/lib/*" io.temporal.testserver.TestServer "$@"\n')
    script.chmod(0o755)
    script.replace(program)
    return program
