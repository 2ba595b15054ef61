"""The public names of `holotrace.testing`; each is imported when first used."""

from .builder import TraceBuilder as TraceBuilder
from .job_truth import JobTruth as JobTruth, RankTruth as RankTruth
from .small_job import small_job as small_job
from .synthetic import write_job as write_job
