// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A model of the server: an artifact in a version's folder, loaded once for all instances.
#pragma once

#include "shlo_disc.h"

#include "artifact/json.h"
#include "triton/model_config.h"
#include "triton/server_api.h"

#include <memory>
#include <string>

namespace disc::triton {

/// The options of the command line, --backend-config=shlo_disc,NAME=VALUE.
struct BackendOptions {
  bool trust = false;
};

struct FreeProgram {
  void operator()(disc_program_t *program) const { disc_free_program(program); }
};
using ProgramPointer = std::unique_ptr<disc_program_t, FreeProgram>;

class Model {
public:
  /// Loads the artifact, binds its weights, and checks or completes the configuration. Throws Failure, Error.
  Model(TRITONBACKEND_Model *handle, const BackendOptions &options);

  const disc_program_t *program() const { return program_.get(); }
  const Signature &signature() const { return signature_; }
  /// Tells whether the server joins requests along their first dimensions, which its shapes then include.
  bool has_batches() const { return max_batch_size_ > 0; }
  /// Throws Failure for an error of a call, with the name of the input or output at fault.
  void check_call(disc_error_t *error) const;

private:
  void load(const Json &config, const BackendOptions &options);
  void bind_weights(const Json &config);
  void read_signature();
  void check_or_complete(const Json &config);
  std::string parameter(const Json &config, const char *name) const;
  std::string in_folder(const std::string &file) const;

  TRITONBACKEND_Model *handle_;
  std::string name_, folder_;
  int64_t max_batch_size_ = 0;
  ProgramPointer program_;
  Signature signature_;
};

} // namespace disc::triton
