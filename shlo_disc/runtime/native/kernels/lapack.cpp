// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lapack.h"

#include "core/error.h"

namespace disc {

namespace {

template <typename T> BuiltinTable typed_table() {
  BuiltinTable table;
  add_factorisations<T>(table);
  add_spectral<T>(table);
  return table;
}

} // namespace

Lapack &Lapack::instance() {
  static auto *lapack = new Lapack; // worker threads may outlive static destructors
  return *lapack;
}

void Lapack::install(std::unordered_map<std::string, void *> functions) { functions_ = std::move(functions); }

const Builtin *lapack_builtin(std::string_view target) {
  static const std::unordered_map<char, BuiltinTable> tables = {{'s', typed_table<float>()},
                                                                {'d', typed_table<double>()},
                                                                {'c', typed_table<Complex64>()},
                                                                {'z', typed_table<Complex128>()}};
  constexpr std::string_view prefix = "lapack_";
  if (!target.starts_with(prefix) || target.size() <= prefix.size() + 1)
    return nullptr;
  auto table = tables.find(target[prefix.size()]);
  if (table == tables.end())
    return nullptr;
  auto found = table->second.find(target.substr(prefix.size() + 1));
  if (found == table->second.end())
    return nullptr;
  if (!Lapack::instance().available())
    bad_artifact("the program calls LAPACK ('" + std::string(target) + "'), which needs SciPy to be installed");
  return &found->second;
}

} // namespace disc
