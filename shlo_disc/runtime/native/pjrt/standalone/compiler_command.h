// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which program compiles for a plugin in a process without Python.
#pragma once

#include <string>

namespace disc::pjrt {

/// The file that this plugin was loaded from.
const std::string &plugin_path();

/// The folder of the Python package that the plugin lies in; empty where it lies elsewhere.
std::string package_folder();

/// The Python interpreter that compiles, as a path or a name to look for in PATH: the one that was chosen, that of
/// SHLO_DISC_COMPILER, or that of the environment in which the package of the plugin is installed. Throws UNIMPLEMENTED
/// where there is none, or SHLO_DISC_COMPILER is empty.
std::string compiler_command(const std::string &chosen);

} // namespace disc::pjrt
