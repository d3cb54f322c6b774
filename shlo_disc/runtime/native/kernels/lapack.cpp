// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lapack.h"

#include "core/error.h"

#include <initializer_list>

namespace disc {

namespace {

constexpr std::initializer_list<const char *> kOfAllTypes = {"geev",  "gees",  "gehrd", "geqp3", "geqrf", "gesdd",
                                                             "gesvd", "getrf", "gtsv",  "potrf", "trsm"};
constexpr std::initializer_list<const char *> kOfReals = {"orgqr", "ormqr", "syevd", "sytrd"};
constexpr std::initializer_list<const char *> kOfComplexes = {"heevd", "hetrd", "ungqr", "unmqr"};

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

std::vector<std::string> Lapack::names() {
  constexpr std::pair<std::string_view, std::initializer_list<const char *>> functions[] = {
      {"sdcz", kOfAllTypes}, {"sd", kOfReals}, {"cz", kOfComplexes}};
  std::vector<std::string> names;
  for (const auto &[letters, parts] : functions)
    for (char letter : letters)
      for (const char *part : parts)
        names.push_back(letter + std::string(part));
  return names;
}

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
    bad_artifact("the program calls LAPACK ('" + std::string(target) + "'), which needs ",
                 {"SciPy to be installed; programs in C name a library by disc_open_blas, clients of PJRT by the "
                  "option blas",
                  "a library: pass one that has LAPACK, such as libopenblas.so.0, to disc_open_blas first"});
  return &found->second;
}

} // namespace disc
