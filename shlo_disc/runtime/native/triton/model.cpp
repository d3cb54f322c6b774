// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "triton/model.h"

#include "triton/errors.h"
#include "triton/message.h"
#include "triton/weights_file.h"

#include <algorithm>
#include <string_view>
#include <sys/stat.h>
#include <vector>

namespace disc::triton {

namespace {

constexpr const char *kProgramFile = "model.disc", *kWeightsFile = "model.weights";

constexpr std::string_view kParameters[] = {"cpu", "memory_limit", "threads", "trust", "weights"};

/// Tells whether nobody reads a parameter of this name: the server has some of its own.
bool is_unknown(std::string_view name) {
  return std::ranges::find(kParameters, name) == std::end(kParameters) && !name.starts_with("TRITON");
}

int64_t number(const std::string &parameter, const std::string &text) {
  if (text.empty())
    return 0;
  Json value{Json::Value(text)};
  std::optional<int64_t> found = integer(&value);
  if (!found || *found < 0)
    throw Failure(kInvalidArgument, "the parameter '" + parameter + "' is '" + text + "': set it to a number of 0 or more");
  return *found;
}

bool flag(const std::string &parameter, const std::string &text) {
  if (text == "true" || text == "1")
    return true;
  if (!text.empty() && text != "false" && text != "0")
    throw Failure(kInvalidArgument, "the parameter '" + parameter + "' is '" + text + "': set it to true or false");
  return false;
}

bool exists(const std::string &path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0;
}

Tensor tensor_of(const disc_array_info &info) {
  return {info.path, info.dtype, {info.size_texts, info.size_texts + info.rank}};
}

using Describe = disc_error_t *(const disc_program_t *, size_t, disc_array_info *);

disc_array_info described(Describe *describe, const disc_program_t *program, size_t index) {
  disc_array_info info{};
  info.struct_size = sizeof info;
  check(describe(program, index, &info));
  return info;
}

/// The scheduler that a configuration states, which one that completes it has to state as well.
std::string_view scheduler_of(const Json &config) {
  for (std::string_view name : {"dynamic_batching", "sequence_batching"})
    if (const Json *member = config.member(name); member != nullptr && !member->is_null())
      return name;
  return "";
}

} // namespace

Model::Model(TRITONBACKEND_Model *handle, const BackendOptions &options) : handle_(handle) {
  const char *name = nullptr, *location = nullptr;
  uint64_t version = 0;
  ArtifactType type = kFilesystem;
  check(TRITONBACKEND_ModelName(handle, &name));
  check(TRITONBACKEND_ModelVersion(handle, &version));
  check(TRITONBACKEND_ModelRepository(handle, &type, &location));
  if (type != kFilesystem)
    throw Failure(kUnsupported, "the model repository is no file system");
  name_ = name;
  folder_ = std::string(location) + "/" + std::to_string(version);
  TRITONSERVER_Message *message = nullptr;
  check(TRITONBACKEND_ModelConfig(handle, kConfigVersion, &message));
  Json config = json_of(MessagePointer(message).get());
  max_batch_size_ = integer(config.member("max_batch_size")).value_or(0);
  load(config, options);
  bind_weights(config);
  read_signature();
  check_or_complete(config);
  std::string level = disc_level(program());
  log(kInfo, "model '" + name_ + "', version " + std::to_string(version) + ": the program '" + disc_name(program()) + "'" +
                 (level.empty() ? "" : ", for processors of the level " + level));
}

void Model::check_call(disc_error_t *error) const {
  check(error, [&](const std::string &path) -> std::string {
    for (const Tensor &tensor : signature_.inputs)
      if (path == tensor.path)
        return tensor.name;
    return path;
  });
}

std::string Model::parameter(const Json &config, const char *name) const {
  const Json *parameters = config.member("parameters");
  return text_of(parameters != nullptr ? parameters->member(name) : nullptr, "string_value");
}

std::string Model::in_folder(const std::string &file) const {
  if (file.find('/') != std::string::npos)
    throw Failure(kInvalidArgument, "'" + file + "' is no name of a file in the model's version folder " + folder_);
  return folder_ + "/" + file;
}

void Model::load(const Json &config, const BackendOptions &options) {
  if (const Json *parameters = config.member("parameters"); parameters != nullptr && parameters->get<Json::Object>())
    for (const auto &[name, value] : *parameters->get<Json::Object>())
      if (is_unknown(name))
        log(kWarning, "model '" + name_ + "': the backend reads no parameter '" + name +
                          "'; it has cpu, memory_limit, threads, trust and weights");
  if (!options.trust && !flag("trust", parameter(config, "trust")))
    throw Failure(kInvalidArgument,
                  "DISC-A101: the artifact of model '" + name_ +
                      "' holds native code, which runs in the server: if you know who made it, add parameters { key: "
                      "\"trust\" value { string_value: \"true\" } } to its config.pbtxt, or start the server with "
                      "--backend-config=shlo_disc,trust=true for all models");
  disc_load_options load_options{};
  std::string cpu = parameter(config, "cpu");
  load_options.struct_size = sizeof load_options;
  load_options.trust = 1;
  load_options.threads = static_cast<int32_t>(std::min<int64_t>(number("threads", parameter(config, "threads")), INT32_MAX));
  load_options.memory_limit = number("memory_limit", parameter(config, "memory_limit"));
  load_options.cpu = cpu.empty() ? nullptr : cpu.c_str();
  std::string file = text_of(&config, "default_model_filename");
  disc_program_t *loaded = nullptr;
  check(disc_load(in_folder(file.empty() ? kProgramFile : file).c_str(), &load_options, &loaded));
  program_.reset(loaded);
}

void Model::bind_weights(const Json &config) {
  std::string file = parameter(config, "weights");
  if (file.empty() && !exists(in_folder(kWeightsFile)))
    return;
  program_.reset(bound_to_file(program(), in_folder(file.empty() ? kWeightsFile : file)));
}

void Model::read_signature() {
  std::vector<std::string> names;
  for (size_t i = 0; i < disc_argument_count(program()); ++i) {
    disc_array_info info = described(disc_describe_argument, program(), i);
    signature_.inputs.push_back(tensor_of(info));
    names.emplace_back(info.name);
  }
  for (size_t i = 0; i < disc_result_count(program()); ++i)
    signature_.outputs.push_back(tensor_of(described(disc_describe_result, program(), i)));
  name_tensors(signature_, names);
  check_types(signature_);
}

void Model::check_or_complete(const Json &config) {
  std::string wrong;
  if (std::string reason = no_batch_reason(signature_); max_batch_size_ > 0 && !reason.empty())
    wrong = "max_batch_size is " + std::to_string(max_batch_size_) + ", and requests for this program cannot be joined, as " +
            reason + ": set max_batch_size to 0";
  else
    wrong = misfit(signature_, max_batch_size_, config);
  if (!wrong.empty())
    throw Failure(kInvalidArgument, "the configuration of model '" + name_ + "': " + wrong);
  bool completes = false;
  check(TRITONBACKEND_ModelAutoCompleteConfig(handle_, &completes));
  if (!completes || states_tensors(config))
    return;
  std::string text = config_text(signature_, max_batch_size_, scheduler_of(config));
  check(TRITONBACKEND_ModelSetConfig(handle_, kConfigVersion, message_of(text).get()));
}

} // namespace disc::triton
