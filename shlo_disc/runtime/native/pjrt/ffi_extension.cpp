// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions of a framework's user that programs call by name.
#include "compile.h"
#include "device.h"
#include "extensions.h"

namespace disc::pjrt {

namespace {

/// Types tell user data apart that frameworks pass to handlers, which this runtime does not do.
void register_type(PJRT_FFI_Type_Register_Args &) { fail_unimplemented("PJRT_FFI_Type_Register"); }
void add_user_data(PJRT_FFI_UserData_Add_Args &) { fail_unimplemented("PJRT_FFI_UserData_Add"); }

void register_handler(PJRT_FFI_Register_Handler_Args &args) {
  std::string name(&given(args.target_name, "target_name"), args.target_name_size);
  std::string platform(&given(args.platform_name, "platform_name"), args.platform_name_size);
  if (platform != kPlatformName)
    fail_argument("the function '" + name + "' is for the platform '" + platform + "', not for shlo_disc");
  register_function(name, &given(static_cast<char *>(args.handler), "handler"));
}

} // namespace

PJRT_Extension_Base *ffi_extension(PJRT_Extension_Base *next) {
  static PJRT_FFI_Extension extension{{sizeof(PJRT_FFI_Extension), PJRT_Extension_Type_FFI, next},
                                      entry<register_type>,
                                      entry<add_user_data>,
                                      entry<register_handler>};
  return &extension.base;
}

} // namespace disc::pjrt
