"""Where public traces come from: what to fetch, and where `HYBRID_TRACES` is searched for it.

The project ships none of them: they are research data with licences of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hybrid.sim.traces.reading import TraceError


@dataclass(frozen=True, slots=True)
class Source:
    """One public file or folder.

    Attributes:
        kind: The importer that reads it.
        repository: On GitHub.
        commit: The state that was checked.
        path: In the repository.
        sha256: Of that file; `""` for a folder.
        licence: Of the data.
        files: Where it, or a shorter table made of it, is looked for below `HYBRID_TRACES`.
    """

    kind: str
    repository: str
    commit: str
    path: str
    sha256: str
    licence: str
    files: tuple[str, ...]

    @property
    def link(self) -> str:
        """Where to get it."""
        kind = "raw" if self.sha256 else "tree"
        return f"https://github.com/{self.repository}/{kind}/{self.commit}/{self.path}"


SOURCES = (
    Source(
        "philly",
        "siasosp23/artifacts",
        "aaf7a0de7b6cb5eab06ea020467ede5d2fd18e70",
        "sia-simulator/traces/philly.csv",
        "ebffb3dd1589bdf4e7bcd74496201c5ded1d557d498ee14f560463f37ec353da",
        "CC-BY-4.0 (Microsoft)",
        ("jobs/philly_jobs.csv.gz", "jobs/philly.csv"),
    ),
    Source(
        "alibaba-pod",
        "alibaba/clusterdata",
        "7a6c496e4f4b6ce6150be8f881cb051bf2abff42",
        "cluster-trace-gpu-v2023/csv/openb_pod_list_default.csv",
        "1ee7ed79c27a3b0861cda8ddba86a004c6aba904caafa329a76ae93ca63834a8",
        "for research (Alibaba)",
        ("jobs/alibaba_gpu2023_openb.csv.gz", "jobs/openb_pod_list_default.csv"),
    ),
    Source(
        "azure-llm",
        "Azure/AzurePublicDataset",
        "b469a113cedca53ddc3bdea71a143dc4b7d8700c",
        "data/AzureLLMInferenceTrace_conv.csv",
        "2f1e5b666d4e3055fdbba98598ce2ec307767b9064e03e2fa46676dbcc7d0bf8",
        "CC-BY-4.0",
        ("inference/azure_llm_2023_conv.csv.gz", "inference/AzureLLMInferenceTrace_conv.csv"),
    ),
    Source(
        "servegen",
        "alibaba/ServeGen",
        "f891d1189eb32b3868dfc443800c4150548c282a",
        "data/language/m-large",
        "",
        "Apache-2.0",
        ("inference/servegen_m-large_rate.csv.gz", "inference/m-large"),
    ),
    Source(
        "spot",
        "skypilot-org/spot-traces",
        "221da1ab9bdfe7966da296265d7694d52dc0c5a6",
        "availability/1-node/aws-02-15-2023",
        "",
        "no licence file; published with the NSDI'24 paper",
        ("spot/aws_v100_45d_rle.json.gz", "spot/aws-02-15-2023"),
    ),
)


def find(kind: str, folder: Path | None) -> Path:
    """Return where the public trace of a kind lies below `HYBRID_TRACES`.

    Raises:
        TraceError: It is not there; says what to fetch, and into which file.
    """
    source = next((each for each in SOURCES if each.kind == kind), None)
    if source is None:
        raise TraceError(f"there is no public trace for {kind}; name a file of yours")
    if folder is not None:
        for name in source.files:
            if (folder / name).exists():
                return folder / name
    where = f"not in {folder} (HYBRID_TRACES)" if folder else "HYBRID_TRACES is not set"
    check = f"; its SHA-256 is {source.sha256}" if source.sha256 else ""
    raise TraceError(
        f"the {kind} trace is not here: {where}. It is never shipped. Fetch {source.link} "
        f"to {source.files[-1]} below HYBRID_TRACES, or name a file{check}. "
        "docs/traces.md lists all of them"
    )
