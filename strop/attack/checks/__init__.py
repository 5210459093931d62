"""Questions of the certificate: each a coroutine that is given the bench and answers what it tried and found."""
