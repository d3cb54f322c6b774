// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The codes of errors, such as DISC-S103, by the rules of shlo_disc/errors.py.
#pragma once

#include <string_view>

namespace disc::capi {

/// The code of an error by its kind and Python's text; "" where it has none.
const char *error_code(std::string_view kind, std::string_view text);

} // namespace disc::capi
