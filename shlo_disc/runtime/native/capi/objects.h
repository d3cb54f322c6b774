// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the handles of shlo_disc.h are.
#pragma once

#include "shlo_disc.h"

#include "core/error.h"
#include "program/executable.h"

#include <memory>
#include <string>
#include <vector>

namespace disc::capi {

/// A specification as disc_array_info points at it.
struct ArrayText {
  explicit ArrayText(const ArraySpec &spec, std::string name = "");
  ArrayText(ArrayText &&) = default; // a copy would point into the original

  void write(disc_array_info *info) const;

  std::string path, name, dtype;
  ::DLDataType type;
  std::vector<int64_t> sizes;
  std::vector<std::string> texts;
  std::vector<const char *> text_pointers;
};

struct Loaded {
  std::shared_ptr<Executable> executable;
  std::vector<ArrayText> arguments, results;
  std::string level;

  const Program &program() const { return executable->program(); }
};

/// The first arguments of a program, fixed. An argument that is read by products alone has no address but its forms.
struct Bound {
  std::vector<int64_t> dims;
  std::vector<void *> addresses;
  std::vector<std::shared_ptr<Block>> blocks;
  PackedForms forms;
};

} // namespace disc::capi

struct disc_program {
  std::shared_ptr<const disc::capi::Loaded> loaded;
  std::shared_ptr<const disc::capi::Bound> bound; // nothing bound: empty, with the packed forms of constants
};

struct disc_plan_object {
  disc_program program;
  std::vector<int64_t> dims; // of all arguments
  std::shared_ptr<const disc::Plan> plan;
  std::vector<const int64_t *> argument_shapes, result_shapes;
};

/// Errors for what `export_library` writes: for a parameter that is NULL, such as "scorer_plan: plan", and in
/// `function`, such as "scorer_run", for a plan that is NULL or of another program.
extern "C" disc_error_t *disc_check_parameter(const void *given, const char *parameter);
extern "C" disc_error_t *disc_check_plan(const disc_plan_t *plan, const disc_program_t *program, const char *function);

struct disc_results {
  std::shared_ptr<const disc::capi::Loaded> loaded;
  disc::Results results;
  std::vector<std::vector<int64_t>> shapes;
  std::vector<::DLTensor> tensors;
};
