"""ElasticQuota: a plugin for trio-sched, quotas of namespaces that lend each other what they do not use."""

from trio_sched_elastic_quota.plugin import ElasticQuota as ElasticQuota
from trio_sched_elastic_quota.resource import QUOTA as QUOTA

__all__ = ["QUOTA", "ElasticQuota"]
