"""What each error of AWS means for the caller: the one table, and its translation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hybrid.core.errors import (
    AuthError,
    CapacityError,
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    ProviderError,
    QuotaError,
    Scope,
    ThrottledError,
    TransientError,
)

# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
ERRORS: Mapping[str, type[ProviderError]] = {
    "InsufficientAddressCapacity": CapacityError,
    "InsufficientCapacity": CapacityError,
    "InsufficientCapacityOnHost": CapacityError,
    "InsufficientFreeAddressesInSubnet": CapacityError,
    "InsufficientHostCapacity": CapacityError,
    "InsufficientInstanceCapacity": CapacityError,
    "InsufficientReservedInstanceCapacity": CapacityError,
    "InsufficientVolumeCapacity": CapacityError,
    "ReservationCapacityExceeded": CapacityError,
    "SpotMaxPriceTooLow": CapacityError,
    "UnfulfillableCapacity": CapacityError,
    "InstanceLimitExceeded": QuotaError,
    "MaxFleetCountExceeded": QuotaError,
    "MaxIOPSLimitExceeded": QuotaError,
    "MaxSpotInstanceCountExceeded": QuotaError,
    "NetworkInterfaceLimitExceeded": QuotaError,
    "PrivateIpAddressLimitExceeded": QuotaError,
    "VcpuLimitExceeded": QuotaError,
    "VersionLimitExceeded": QuotaError,
    "VolumeLimitExceeded": QuotaError,
    "EC2ThrottledException": ThrottledError,
    "RequestLimitExceeded": ThrottledError,
    "RequestThrottled": ThrottledError,
    "RequestThrottledException": ThrottledError,
    "SlowDown": ThrottledError,
    "Throttling": ThrottledError,
    "ThrottlingException": ThrottledError,
    "TooManyRequestsException": ThrottledError,
    "AccessDenied": AuthError,
    "AccessDeniedException": AuthError,
    "AuthFailure": AuthError,
    "Blocked": AuthError,
    "ExpiredToken": AuthError,
    "ExpiredTokenException": AuthError,
    "IncompleteSignature": AuthError,
    "InvalidClientTokenId": AuthError,
    "InvalidSignatureException": AuthError,
    "MissingAuthenticationToken": AuthError,
    "NotSignedUp": AuthError,
    "OptInRequired": AuthError,
    "PendingVerification": AuthError,
    "RequestExpired": AuthError,
    "SignatureDoesNotMatch": AuthError,
    "UnauthorizedOperation": AuthError,
    "UnrecognizedClientException": AuthError,
    "IdempotentInstanceTerminated": ConflictError,
    "IdempotentParameterMismatch": ConflictError,
    "InvalidInstanceID.NotFound": NotFoundError,
    "InternalError": TransientError,
    "InternalFailure": TransientError,
    "InternalServerError": TransientError,
    "RequestTimeout": TransientError,
    "ServerInternal": TransientError,
    "ServiceUnavailable": TransientError,
    "Unavailable": TransientError,
    # The zone, the account or the image does not go with the type: nothing to wait for.
    "InstanceTypeNotSupported": InvalidRequestError,
    "OperationNotPermitted": InvalidRequestError,
    "ParameterNotFound": InvalidRequestError,
    "Unsupported": InvalidRequestError,
    "UnsupportedOperation": InvalidRequestError,
    "ValidationError": InvalidRequestError,
    "VPCResourceNotSpecified": InvalidRequestError,
}

# Families of codes: `InvalidAMIID.NotFound`, `MissingParameter`, `MalformedQueryString`, ...
_FAMILIES: tuple[tuple[str, type[ProviderError]], ...] = (
    ("AuthFailure.", AuthError),
    ("Invalid", InvalidRequestError),
    ("Malformed", InvalidRequestError),
    ("Missing", InvalidRequestError),
    ("Unknown", InvalidRequestError),
)

_ENDINGS: tuple[tuple[str, type[ProviderError]], ...] = (
    ("LimitExceeded", QuotaError),
    (".NotFound", InvalidRequestError),
    (".NotFoundException", InvalidRequestError),
)

# How far a failure reaches, where that is not what its class says.
_SCOPES: Mapping[str, Scope] = {
    "InsufficientFreeAddressesInSubnet": Scope.ZONE,  # a zone has one subnet
    # Quotas of vCPUs are by family and market: others may have room.
    "InstanceLimitExceeded": Scope.POOL,
    "MaxSpotInstanceCountExceeded": Scope.POOL,
    "VcpuLimitExceeded": Scope.POOL,
    # Policies name types and regions: a refusal of one launch says nothing of the others.
    "UnauthorizedOperation": Scope.POOL,
    "OptInRequired": Scope.REGION,
    "RequestLimitExceeded": Scope.REGION,
}

# Exceptions of botocore by class name, so that this file needs no SDK.
_RAISED: Mapping[str, type[ProviderError]] = {
    "ConfigNotFound": AuthError,
    "CredentialRetrievalError": AuthError,
    "InvalidConfigError": AuthError,
    "LoginError": AuthError,
    "MissingDependencyException": AuthError,
    "NoCredentialsError": AuthError,
    "PartialCredentialsError": AuthError,
    "ProfileNotFound": AuthError,
    "RefreshWithMFAUnsupportedError": AuthError,
    "SSOError": AuthError,
    "InvalidRegionError": InvalidRequestError,
    "ParamValidationError": InvalidRequestError,
    "UnknownServiceError": InvalidRequestError,
}

_HINTS: Mapping[str, str] = {
    "AccessDeniedException": "grant the permission; docs/fidelity/aws.md lists all of them",
    "AuthFailure": "check the access key, and that the region is enabled for the account",
    "ExpiredToken": "renew the session (`aws sso login`, or new temporary credentials)",
    "InvalidClientTokenId": "the access key does not exist; check AWS_ACCESS_KEY_ID or the profile",
    "NoCredentialsError": "set AWS_PROFILE, or `providers.aws.profile`, or run where a role is",
    "OptInRequired": "enable the region, or subscribe to the image, in the AWS console",
    "ProfileNotFound": "write its name as it is in ~/.aws/config",
    "RequestExpired": "the clock of this machine is wrong, or the session has expired",
    "SignatureDoesNotMatch": "the secret key is wrong, or the clock of this machine is",
    "UnauthorizedOperation": "grant the permission; docs/fidelity/aws.md lists all of them",
    "VcpuLimitExceeded": "ask for a higher quota in Service Quotas, or set max_nodes lower",
}
_SHOWN_CHARS = 400  # an encoded authorization message alone has thousands


def of_code(
    code: str, message: str, *, provider: str, what: str, status: int = 400
) -> ProviderError:
    """Return the error for a code that AWS answered.

    Args:
        code: AWS's error code.
        message: AWS's words.
        provider: Name of the provider.
        what: What was asked, such as `RunInstances in us-east-1`.
        status: HTTP status of the answer.
    """
    kind = ERRORS.get(code) or next(
        (kind for prefix, kind in _FAMILIES if code.startswith(prefix)), None
    )
    if kind is None:
        kind = next((kind for end, kind in _ENDINGS if code.endswith(end)), None)
    if kind is None:
        kind = TransientError if status >= 500 else ProviderError
    words = _sentence(what, code, message)
    return kind(words, provider=provider, code=code, scope=_SCOPES.get(code))


def of_exception(error: Exception, *, provider: str, what: str) -> ProviderError:
    """Return the error for an exception of botocore that is no answer of AWS.

    What is not known to be harmless may have happened after the request was sent.
    """
    name = next((name for name in _names(error) if name in _RAISED), type(error).__name__)
    kind = _RAISED.get(name, TransientError)
    return kind(_sentence(what, name, str(error)), provider=provider, code=name)


def _names(error: Exception) -> Iterator[str]:
    return (kind.__name__ for kind in type(error).__mro__)


def _sentence(what: str, code: str, message: str) -> str:
    short = " ".join(message.split())
    short = short if len(short) <= _SHOWN_CHARS else f"{short[:_SHOWN_CHARS]}..."
    hint = f"; {_HINTS[code]}" if code in _HINTS else ""
    return f"{what}: {code}: {short}{hint}"
