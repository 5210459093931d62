"""Live dashboard `strop watch`: pages over run folders, updated from what runs append on disk."""
