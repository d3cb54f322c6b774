// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shlo_disc.h"

uint32_t disc_version(void) { return DISC_API_VERSION; }
