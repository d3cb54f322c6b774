// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "prepacked.h"

#include "core/error.h"
#include "kernels/packing.h"

namespace disc {

namespace {

constexpr int64_t kAlignment = 64;

size_t first_constant(const Program &program) { return program.arguments.size() + program.results.size(); }

} // namespace

void pack_form(ThreadPool &pool, const PackSpec &spec, const void *source, void *target) {
  DiscDot dot{};
  dot.format = spec.format, dot.n = spec.n, dot.k = spec.k, dot.b_k = spec.k_stride, dot.b_n = spec.n_stride;
  dot.b = source, dot.tile_columns = spec.columns;
  pack_right(pool, dot, target);
}

int64_t packed_room(const PackSpec &spec) { return (spec.bytes() + kAlignment - 1) / kAlignment * kAlignment; }

std::string pack_constants(ThreadPool &pool, const Program &program, std::string_view constants) {
  if (program.is_prepacked)
    bad_artifact("the constants of the program are packed");
  std::string packed;
  for (const PackSpec &spec : program.packs) {
    if (spec.buffer < first_constant(program))
      continue;
    const ConstantSpec &constant = program.constants[spec.buffer - first_constant(program)];
    size_t offset = packed.size();
    packed.resize(offset + static_cast<size_t>(packed_room(spec)));
    pack_form(pool, spec, constants.data() + constant.offset, packed.data() + offset);
  }
  return packed;
}

/// No sum is larger than the section, so none overflows.
void check_packed(const Program &program, std::string_view packed) {
  auto left = static_cast<int64_t>(packed.size());
  for (const PackSpec &spec : program.packs) {
    if (spec.buffer < first_constant(program))
      continue;
    left -= packed_room(spec);
    if (left < 0)
      break;
  }
  if (left != 0)
    bad_artifact("the section of packed constants does not fit the program");
}

} // namespace disc
