"""The native core and its calibration."""
