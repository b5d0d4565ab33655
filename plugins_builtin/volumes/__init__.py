"""VolumeBinding, VolumeRestrictions, VolumeZone, NodeVolumeLimits."""
