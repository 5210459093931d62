"""`strop watch`: a live page over run folders; it reads what runs leave on disk, and only what is new."""
