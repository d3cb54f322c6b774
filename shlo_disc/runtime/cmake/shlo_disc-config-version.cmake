# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Releases of one number before the first point are compatible.
set(PACKAGE_VERSION "0.1.0")
string(REGEX MATCH "^[0-9]+" _shlo_disc_major "${PACKAGE_VERSION}")
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION OR NOT PACKAGE_FIND_VERSION_MAJOR EQUAL _shlo_disc_major)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
unset(_shlo_disc_major)
