// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The attributes of an op of VHLO: what is part of a program's skeleton, and the integers that follow from sizes.
#pragma once

#include "bytecode/elements.h"

#include <map>

namespace disc::pjrt {

using namespace bytecode;

/// The part of an op that its attributes give, which many ops share.
struct OpAttributes {
  Tokens tokens;
  std::string_view function; // that it calls or is
  bool is_private = false;   // a function
  std::vector<int64_t> numbers;
  std::vector<std::pair<std::string_view, uint32_t>> places; // the attribute and the position in it of each number
};

/// Reads attributes of ops. Throws Unreadable for an op that has more or fewer of them than are known.
class OpAttributeReader {
public:
  OpAttributeReader(const Bytecode &bytecode, Elements &elements) : bytecode_(bytecode), elements_(elements) {}

  /// Those that an op of a name has by its definition, in an entry of the table of properties; they are read once.
  const OpAttributes &inherent(uint64_t op_name, uint64_t properties);

  /// Those in a dictionary. What they state is fixed, but for the count of a call for the largest elements.
  OpAttributes discardable(uint64_t op_name, std::optional<uint64_t> properties, uint64_t dictionary);

private:
  void read(std::string_view op_name, std::string_view bytes, OpAttributes &out);
  void read(std::string_view name, uint64_t value, OpAttributes &out);
  bool is_top_k(uint64_t op_name, std::optional<uint64_t> properties) const;

  const Bytecode &bytecode_;
  Elements &elements_;
  std::map<std::pair<uint64_t, uint64_t>, OpAttributes> inherent_; // of an op's name and an entry of the table
};

} // namespace disc::pjrt
