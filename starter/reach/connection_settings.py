"""The settings of the connection to Temporal, `TEMPORAL_…` variables and its own file, and what is wrong with them."""

import os
import re

from temporalio.envconfig import ClientConfig, ClientConnectConfig

from longhaul.agent.plain.errors import BadSetup


class BadConnection(BadSetup):
    """A `TEMPORAL_…` variable or Temporal's configuration file can't be used; the sentence names it."""


def connection_settings() -> ClientConnectConfig:
    """As the SDK reads them. Raises BadConnection."""
    try:
        return ClientConfig.load_client_connect_config()
    except OSError as error:
        named = [name for name, value in os.environ.items() if name.startswith("TEMPORAL_") and value == error.filename]
        where = named[0] if named else "Temporal's configuration file"
        raise BadConnection(f"{where}: {str(error.filename)!r} can't be read: {error.strerror}") from error
    except RuntimeError as error:  # the SDK's ConfigError, of a module that can't be imported by name
        raise bad_connection(error) from error


def bad_connection(error: Exception) -> BadConnection:
    """What the SDK says of settings that it can't use."""
    return BadConnection(f"the settings of the connection to Temporal can't be used: {_said(error)}")


def _said(error: Exception) -> str:
    sentence = " ".join(str(error).split()).removeprefix("Configuration loading error: ")
    if "Profile" in sentence and "not found" in sentence:
        return f"{sentence} in Temporal's configuration file; see TEMPORAL_PROFILE and TEMPORAL_CONFIG_FILE"
    if "client cert and private key" in sentence:
        return "TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH are set together or not at all"
    return sentence


def why_not_reached(error: Exception, *, tls: bool) -> str:
    """What the transport's nested error means, and what to do about it."""
    told = str(error)
    if "InvalidContentType" in told:
        return "it does not speak TLS there; unset TEMPORAL_TLS, its certificates and TEMPORAL_API_KEY, or the port"
    if found := re.search(r"InvalidCertificate\((\w+)(?:\(OtherError\((\w+)\)\))?", told):
        return f"its certificate is not trusted here: {_distrusted(found[2] or found[1], told)}"
    if "NoCertificatesPresented" in told:
        return "TEMPORAL_TLS_CLIENT_CERT_PATH holds no certificate in PEM form; name the file that does"
    if not tls and re.search(r"closed|reset|broken pipe", told, re.IGNORECASE):
        return "it hangs up; set TEMPORAL_TLS=true if it wants TLS, or TEMPORAL_ADDRESS to a Temporal server"
    hung_up = r"CertificateRequired|HandshakeFailure|UnexpectedEof|BrokenPipe|ConnectionReset|connection closed"
    if tls and re.search(hung_up, told):
        return (
            "it hangs up once it knows us; set TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH if it "
            "wants a certificate, or TEMPORAL_API_KEY"
        )
    quoted = re.findall(r'"([^"]+)"', told)
    cause = quoted[-1] if quoted else told[:200]
    return f"{cause}; start one with `longhaul dev`, or set TEMPORAL_ADDRESS"


def _distrusted(kind: str, told: str) -> str:
    match kind.removesuffix("Context"):
        case "NotValidForName":
            names = " and ".join(re.findall(r'DnsName\(\\"([^"\\]+)', told)) or "another server"
            return f"it is for {names}; set TEMPORAL_TLS_SERVER_NAME to its name, if that is the server meant"
        case "Expired":
            return "it has expired; have it renewed, or see to this machine's clock"
        case "NotValidYet":
            return "it does not hold yet; see to this machine's clock"
        case _:
            return f"{kind}; name who signed it in TEMPORAL_TLS_SERVER_CA_CERT_PATH"
