/* A toy device for tests: its memory is not the host's. It is the CPU device behind addresses that no host can
 * follow, so whatever reaches for an array's memory past device.h ends the process; and what its work
 * leaves for the host comes with `wait`, not before. In development builds only. */
#ifndef SIMT_DEVICE_REMOTE_REMOTE_H
#define SIMT_DEVICE_REMOTE_REMOTE_H

#include "device/device.h"

/* Takes over `inner`, a device of the host's, also on failure. */
simt_status device_remote_new(device *inner, device **out);
/* Of the copies this way, the one after `after` more fails, once. */
void device_remote_fail_copy(device_way way, unsigned after);

#endif
