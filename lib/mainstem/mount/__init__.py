"""A scratch `_delta_log` rebuilt from the catalog and laid over the table's real directory, for Delta's own engine."""

from mainstem.mount.build import Mount, Purpose, mount_changes, mount_state, new_place
from mainstem.mount.scratch import sweep

__all__ = ["Mount", "Purpose", "mount_changes", "mount_state", "new_place", "sweep"]
