"""What runs in the page beside the verifier: what stands for compiled packages there, and the desk that is asked."""
