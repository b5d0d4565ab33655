"""Every feature gate of Kubernetes 1.36 and 1.37 that kube-scheduler knows, as data.

One gate a line: its name; its stages, each as ``version:stage`` with the stage ``a`` (alpha), ``b`` (beta), ``g`` (GA),
``d`` (deprecated) or ``x`` (removed), ``+`` or ``-`` for on or off by default, ``!`` if it is locked to that, and
``@1.37`` if that needs ``--min-compatibility-version`` to be at least so much. After ``<`` come the gates that must be on
for it to be on; after ``=`` the one that a removed gate has become part of.
"""

from typing import Final

# ruff: noqa: E501  # a table is read by line

TABLE: Final = """\
APIResponseCompression 1.8:a- 1.16:b+
APIServerIdentity 1.20:a- 1.26:b+
APIServerTracing 1.22:a- 1.27:b+ 1.34:g+!
APIServingWithRoutine 1.30:a-
AggregatedDiscoveryRemoveBetaType 1.0:g- 1.33:d+ 1.35:d+!
AllowDNSOnlyNodeCSR 1.0:g+ 1.31:d-
AllowInsecureKubeletCertificateSigningRequests 1.0:g+ 1.31:d-
AllowOverwriteTerminationGracePeriodSeconds 1.0:g+ 1.32:d- 1.35:d-!
AllowParsingUserUIDFromCertAuth 1.33:b+
AllowServiceExternalIPs 1.0:g+
AllowUnsafeMalformedObjectDeletion 1.32:a-
AnonymousAuthConfigurableEndpoints 1.31:a- 1.32:b+ 1.34:g+!
AnyVolumeDataSource 1.18:a- 1.24:b+ 1.33:g+! 1.37:x+
AtomicFIFO 1.36:b+
AuthorizeNodeWithSelectors 1.31:a- 1.32:b+ 1.34:g+! < AuthorizeWithSelectors
AuthorizePodWebsocketUpgradeCreatePermission 1.35:b+
AuthorizeWithSelectors 1.31:a- 1.32:b+ 1.34:g+!
BtreeWatchCache 1.32:b+ 1.33:g+!
CBORServingAndStorage 1.32:a-
CPUManagerPolicyAlphaOptions 1.23:a-
CPUManagerPolicyBetaOptions 1.23:b+
CPUManagerPolicyOptions 1.22:a- 1.23:b+ 1.33:g+!
CRDObservedGenerationTracking 1.35:b- 1.36:b+
CRDValidationRatcheting 1.28:a- 1.30:b+ 1.33:g+!
CRIListStreaming 1.36:a-
CSIServiceAccountTokenSecrets 1.35:b+ 1.36:g+!
CSIVolumeHealth 1.21:a-
ChangeContainerStatusOnKubeletRestart 1.0:g+ 1.35:d-
ClearingNominatedNodeNameAfterBinding 1.34:a- 1.35:b+
ClientsAllowCARotation 1.36:b+
ClientsAllowCBOR 1.32:a-
ClientsAllowTLSCacheGC 1.36:b+
ClientsPreferCBOR 1.32:a-
CloudControllerManagerWatchBasedRoutesReconciliation 1.35:a-
CloudControllerManagerWebhook 1.27:a-
ClusterTrustBundle 1.27:a- 1.33:b-
ClusterTrustBundleProjection 1.29:a- 1.33:b- < ClusterTrustBundle
ComponentFlagz 1.32:a- 1.36:b+
ComponentStatusz 1.32:a- 1.36:b+
CompositePodGroup 1.37:a- < GenericWorkload
ConcurrentWatchObjectDecode 1.31:b-
ConsistentListFromCache 1.28:a- 1.31:b+ 1.34:g+!
ConstrainedImpersonation 1.35:a- 1.36:b+
ContainerCheckpoint 1.25:a- 1.30:b+
ContainerRestartRules 1.34:a- 1.35:b+
ContainerStopSignals 1.33:a-
ContextualLogging 1.24:a- 1.30:b+
CoordinatedLeaderElection 1.31:a- 1.33:b-
CrossNamespaceVolumeDataSource 1.26:a-
CustomCPUCFSQuotaPeriod 1.12:a- 1.36:g+
CustomResourceFieldSelectors 1.30:a- 1.31:b+ 1.32:g+!
DRAAdminAccess 1.32:a- 1.34:b+ 1.36:g+! < DynamicResourceAllocation
DRAConsumableCapacity 1.34:a- 1.36:b+ < DynamicResourceAllocation
DRADerivedAttributes 1.37:a- < DynamicResourceAllocation
DRADeviceBindingConditions 1.34:a- 1.36:b+ < DRAResourceClaimDeviceStatus DynamicResourceAllocation
DRADeviceCompatibilityGroups 1.37:a- < DRAPartitionableDevices
DRADeviceTaintRules 1.35:a- 1.36:b- 1.37:g+ < DRADeviceTaints
DRADeviceTaints 1.33:a- 1.36:b+ 1.37:g+ < DynamicResourceAllocation
DRAExtendedResource 1.34:a- 1.36:b+ 1.37:g+! < DynamicResourceAllocation
DRAFractionalCapacityRange 1.37:b- 1.37:b+@1.37 < DRAConsumableCapacity
DRAListTypeAttributes 1.36:a- < DynamicResourceAllocation
DRANodeAllocatableResources 1.36:a- < DynamicResourceAllocation
DRAOptionalNodeOperations 1.37:a- < DynamicResourceAllocation
DRAPartitionableDevices 1.33:a- 1.36:b+ < DynamicResourceAllocation
DRAPrioritizedList 1.33:a- 1.34:b+ 1.36:g+ 1.37:g+! < DynamicResourceAllocation
DRAResourceClaimDeviceStatus 1.32:a- 1.33:b+ 1.37:g+!
DRAResourceClaimGranularStatusAuthorization 1.36:b+ < DRAResourceClaimDeviceStatus DynamicResourceAllocation
DRAResourcePoolStatus 1.36:a- < DynamicResourceAllocation
DRASchedulerFilterTimeout 1.34:b+ < DynamicResourceAllocation
DRAWorkloadResourceClaims 1.36:a- 1.37:b- < DynamicResourceAllocation GenericWorkload
DeclarativeValidation 1.33:b+ 1.36:g+!
DeclarativeValidationBeta 1.36:b+ < DeclarativeValidation
DeclarativeValidationTakeover 1.33:b- 1.36:d- < DeclarativeValidation
DeploymentReplicaSetTerminatingReplicas 1.33:a- 1.35:b+
DetectCacheInconsistency 1.34:b+
DisableAllocatorDualWrite 1.31:a- 1.33:b- 1.34:g+ 1.35:g+! < MultiCIDRServiceAllocator
DisableCPUQuotaWithExclusiveCPUs 1.33:b+ 1.36:d+
DisableNodeKubeProxyVersion 1.29:a- 1.31:d- 1.33:d+ 1.36:d+!
DynamicResourceAllocation 1.26:a- 1.32:b- 1.34:g+ 1.35:g+!
EnvFiles 1.34:a- 1.35:b+
EventedPLEG 1.26:a-
ExecProbeTimeout 1.20:g+ 1.35:g+!
ExtendWebSocketsToKubelet 1.36:b+ < NodeDeclaredFeatures
ExternalServiceAccountTokenSigner 1.32:a- 1.34:b+ 1.36:g+!
GangScheduling 1.35:a- 1.37:x- < GenericWorkload = GenericWorkload
GenericWorkload 1.35:a- 1.37:b-
GitRepoVolumeDriver 1.0:g+ 1.33:d- 1.36:d-!
GracefulNodeShutdown 1.20:a- 1.21:b+
GracefulNodeShutdownBasedOnPodPriority 1.23:a- 1.24:b+ < GracefulNodeShutdown
HPAConfigurableTolerance 1.33:a- 1.35:b+
HPAScaleToZero 1.16:a-
HostnameOverride 1.34:a- 1.35:b+
ImageMaximumGCAge 1.29:a- 1.30:b+ 1.35:g+!
ImageVolume 1.31:a- 1.33:b- 1.35:b+ 1.36:g+!
ImageVolumeWithDigest 1.35:a- < ImageVolume
InOrderInformers 1.33:b+ 1.36:g+!
InOrderInformersBatchProcess 1.35:b+
InPlacePodLevelResourcesVerticalScaling 1.35:a- 1.36:b+ < InPlacePodVerticalScaling NodeDeclaredFeatures PodLevelResources
InPlacePodVerticalScaling 1.27:a- 1.33:b+ 1.35:g+!
InPlacePodVerticalScalingExclusiveCPUs 1.32:a- < InPlacePodVerticalScaling
InPlacePodVerticalScalingExclusiveMemory 1.34:a- < InPlacePodVerticalScaling
InPlacePodVerticalScalingInitContainers 1.36:b+ < InPlacePodVerticalScaling NodeDeclaredFeatures
InPlacePodVerticalScalingSchedulerPreemption 1.37:a- < InPlacePodVerticalScaling
InformerResourceVersion 1.30:a- 1.35:g+
InterPodAffinityHostnameFastPath 1.37:a-
JobBackoffLimitPerIndex 1.28:a- 1.29:b+ 1.33:g+!
JobManagedBy 1.30:a- 1.32:b+ 1.35:g+!
JobPodReplacementPolicy 1.28:a- 1.29:b+ 1.34:g+!
JobSuccessPolicy 1.30:a- 1.31:b+ 1.33:g+!
KMSv1 1.0:g+ 1.28:d+ 1.29:d-
KubeletCgroupDriverFromCRI 1.28:a- 1.31:b+ 1.34:g+!
KubeletCrashLoopBackOffMax 1.32:a- 1.35:b+
KubeletEnsureSecretPulledImages 1.33:a- 1.35:b+
KubeletFineGrainedAuthz 1.32:a- 1.33:b+ 1.36:g+!
KubeletInUserNamespace 1.22:a-
KubeletPSI 1.33:a- 1.34:b+ 1.36:g+!
KubeletPodResourcesDynamicResources 1.27:a- 1.34:b+ 1.36:g+!
KubeletPodResourcesGet 1.27:a- 1.34:b+ 1.36:g+!
KubeletPodResourcesListUseActivePods 1.0:g- 1.34:d+
KubeletRegistrationGetOnExistsOnly 1.0:g+ 1.32:d-
KubeletSeparateDiskGC 1.29:a- 1.31:b+
KubeletServiceAccountTokenForCredentialProviders 1.33:a- 1.34:b+
KubeletTracing 1.25:a- 1.27:b+ 1.34:g+!
ListFromCacheSnapshot 1.33:a- 1.34:b+
LocalStorageCapacityIsolationFSQuotaMonitoring 1.15:a- 1.31:b-
LogarithmicScaleDown 1.21:a- 1.22:b+ 1.31:g+!
LoggingAlphaOptions 1.24:a-
LoggingBetaOptions 1.24:b+
ManifestBasedAdmissionControlConfig 1.36:a-
MatchLabelKeysInPodAffinity 1.29:a- 1.31:b+ 1.33:g+!
MatchLabelKeysInPodTopologySpread 1.25:a- 1.27:b+
MatchLabelKeysInPodTopologySpreadSelectorMerge 1.34:b+ < MatchLabelKeysInPodTopologySpread
MaxUnavailableStatefulSet 1.24:a- 1.35:b-
MemoryQoS 1.22:a-
MultiCIDRServiceAllocator 1.27:a- 1.31:b- 1.33:g+ 1.34:g+!
MutableCSINodeAllocatableCount 1.33:a- 1.34:b- 1.35:b+ 1.36:g+!
MutablePVNodeAffinity 1.35:a-
MutablePodResourcesForSuspendedJobs 1.35:a- 1.36:b+
MutableSchedulingDirectivesForSuspendedJobs 1.35:a- 1.36:b+
MutatingAdmissionPolicy 1.32:a- 1.34:b- 1.36:g+
NFTablesProxyMode 1.29:a- 1.31:b+ 1.33:g+!
NativeHistograms 1.36:a-
NodeDeclaredFeatures 1.35:a- 1.36:b+ 1.37:g+!
NodeInclusionPolicyInPodTopologySpread 1.25:a- 1.26:b+ 1.33:g+!
NodeLogQuery 1.27:a+ 1.30:b+ 1.36:g+!
NodeSwap 1.22:a- 1.28:b- 1.30:b+ 1.34:g+!
NominatedNodeNameForExpectation 1.34:a- 1.35:b+
OpenAPIEnums 1.23:a- 1.24:b+
OpportunisticBatching 1.35:b+
OrderedNamespaceDeletion 1.30:b- 1.33:b+ 1.34:g+!
PLEGOnDemandRelist 1.36:b+
PersistentVolumeClaimUnusedSinceTime 1.36:a-
PodAndContainerStatsFromCRI 1.23:a-
PodCertificateRequest 1.34:a- 1.35:b- < AuthorizeNodeWithSelectors
PodDeletionCost 1.21:a- 1.22:b+
PodGroupPreemptionPolicy 1.37:a- < GenericWorkload
PodLevelResourceManagers 1.36:a- < PodLevelResources
PodLevelResources 1.32:a- 1.34:b+
PodLifecycleSleepAction 1.29:a- 1.30:b+ 1.34:g+!
PodLifecycleSleepActionAllowZero 1.32:a- 1.33:b+ 1.34:g+! < PodLifecycleSleepAction
PodLogsQuerySplitStreams 1.32:a-
PodObservedGenerationTracking 1.33:a- 1.34:b+ 1.35:g+!
PodReadyToStartContainersCondition 1.28:a- 1.29:b+
PodSchedulingReadiness 1.26:a- 1.27:b+ 1.30:g+!
PodTopologyLabelsAdmission 1.33:a- 1.35:b+
PodsAPI 1.36:a-
PortForwardWebsockets 1.30:a- 1.31:b+
PreferSameTrafficDistribution 1.33:a- 1.34:b+ 1.35:g+!
PreventStaticPodAPIReferences 1.34:b+
ProcMountType 1.12:a- 1.31:b- 1.33:b+ 1.36:g+! < UserNamespacesSupport
QOSReserved 1.11:a-
RecoverVolumeExpansionFailure 1.23:a- 1.32:b+ 1.34:g+!
RecursiveReadOnlyMounts 1.30:a- 1.31:b+ 1.33:g+!
ReduceDefaultCrashLoopBackOffDecay 1.33:a-
RelaxedDNSSearchValidation 1.32:a- 1.33:b+ 1.34:g+!
RelaxedEnvironmentVariableValidation 1.30:a- 1.32:b+ 1.34:g+!
RelaxedServiceNameValidation 1.34:a- 1.36:b+
ReloadKubeletClientCAFile 1.36:b+
ReloadKubeletServerCertificateFile 1.31:b+
RemoteRequestHeaderUID 1.32:a- 1.33:b+
ResilientWatchCacheInitialization 1.31:b+ 1.34:g+!
ResourceHealthStatus 1.31:a- 1.36:b+ < DynamicResourceAllocation
ResourceHealthStatusMessage 1.36:b+ < ResourceHealthStatus
RestartAllContainersOnContainerExits 1.35:a- 1.36:b+ < ContainerRestartRules NodeDeclaredFeatures
RetryGenerateName 1.30:a- 1.31:b+ 1.32:g+!
RotateKubeletServerCertificate 1.7:a- 1.12:b+
RuntimeClassInImageCriApi 1.29:a-
SELinuxChangePolicy 1.32:a- 1.33:b+ 1.36:g+!
SELinuxMount 1.30:a- 1.33:b-
SELinuxMountReadWriteOncePod 1.25:a- 1.27:b- 1.28:b+ 1.36:g+!
SchedulerAsyncAPICalls 1.34:b-
SchedulerAsyncPreemption 1.32:a- 1.33:b+
SchedulerPopFromBackoffQ 1.33:b+
SchedulerPreQueueingHints 1.37:a-
SchedulerQueueingHints 1.28:b- 1.32:b+ 1.34:g+!
SeparateCacheWatchRPC 1.28:b+ 1.33:d- 1.36:d-!
SeparateTaintEvictionController 1.29:b+ 1.34:g+!
ServiceAccountNodeAudienceRestriction 1.32:b- 1.33:b+
ServiceAccountTokenJTI 1.29:a- 1.30:b+ 1.32:g+!
ServiceAccountTokenNodeBinding 1.29:a- 1.31:b+ 1.33:g+! < ServiceAccountTokenNodeBindingValidation
ServiceAccountTokenNodeBindingValidation 1.29:a- 1.30:b+ 1.32:g+!
ServiceAccountTokenPodNodeInfo 1.29:a- 1.30:b+ 1.32:g+!
ServiceCIDRStatusFieldWiping 1.0:g- 1.36:d+
ShardedListAndWatch 1.36:a-
SidecarContainers 1.28:a- 1.29:b+ 1.33:g+! 1.37:x+
SizeBasedListCostEstimate 1.34:b+
StaleControllerConsistencyDaemonSet 1.36:b+ < AtomicFIFO
StaleControllerConsistencyJob 1.36:b+ < AtomicFIFO
StaleControllerConsistencyReplicaSet 1.36:b+ < AtomicFIFO
StaleControllerConsistencyStatefulSet 1.36:b+ < AtomicFIFO
StatefulSetSemanticRevisionComparison 1.0:b+
StorageCapacityScoring 1.33:a- 1.37:b+
StorageNamespaceIndex 1.30:b+ 1.33:d+
StorageVersionAPI 1.20:a- < APIServerIdentity
StorageVersionHash 1.14:a- 1.15:b+
StorageVersionMigrator 1.30:a- 1.35:b-
StreamingCollectionEncodingToJSON 1.33:b+ 1.34:g+!
StreamingCollectionEncodingToProtobuf 1.33:b+ 1.34:g+!
StrictIPCIDRValidation 1.33:a- 1.36:b+
StructuredAuthenticationConfiguration 1.29:a- 1.30:b+ 1.34:g+!
StructuredAuthenticationConfigurationEgressSelector 1.34:b+ < StructuredAuthenticationConfiguration
StructuredAuthenticationConfigurationJWKSMetrics 1.35:b+ < StructuredAuthenticationConfiguration
SupplementalGroupsPolicy 1.31:a- 1.33:b+ 1.35:g+!
SystemdWatchdog 1.32:b+ 1.35:g+!
TaintTolerationComparisonOperators 1.35:a-
TokenRequestServiceAccountUIDValidation 1.34:b+
TopologyAwareWorkloadScheduling 1.36:a- < GenericWorkload
TopologyManagerPolicyAlphaOptions 1.26:a-
TopologyManagerPolicyBetaOptions 1.26:b- 1.28:b+
TopologyManagerPolicyOptions 1.26:a- 1.28:b+ 1.32:g+!
TranslateStreamCloseWebsocketRequests 1.29:a- 1.30:b+
UnauthenticatedHTTP2DOSMitigation 1.25:b- 1.29:b+
UnknownVersionInteroperabilityProxy 1.28:a- 1.36:b+ < APIServerIdentity
UnlockWhileProcessingFIFO 1.36:b+
UserNamespacesHostNetworkSupport 1.35:a- < NodeDeclaredFeatures UserNamespacesSupport
UserNamespacesSupport 1.25:a- 1.30:b- 1.33:b+ 1.36:g+!
VolumeAttributesClass 1.29:a- 1.31:b- 1.34:g+ 1.36:g+!
VolumeLimitScaling 1.35:a- 1.37:b+
WatchCacheInitializationPostStartHook 1.31:b- 1.36:b+
WatchList 1.27:a- 1.32:b+ 1.33:b- 1.34:b+
WatchListClient 1.30:b- 1.35:b+
WinDSR 1.14:a- 1.33:b+ 1.34:g+!
WinOverlay 1.14:a- 1.20:b+ 1.34:g+!
WindowsCPUAndMemoryAffinity 1.32:a-
WindowsGracefulNodeShutdown 1.32:a- 1.34:b+ < GracefulNodeShutdown
WindowsHostNetwork 1.26:a- 1.33:d-
WorkloadAwarePreemption 1.36:a- 1.37:x- < GangScheduling = GenericWorkload
WorkloadWithJob 1.36:a- < GenericWorkload
"""
