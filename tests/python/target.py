"""What the tests compute on."""

import os

# The toy device, whose memory is not the host's: nothing can be shared with NumPy.
APART = os.environ.get("SIMT_TARGET") == "remote"
