// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The reader of artifacts, as Python sees it.
#include "artifact/cpu_features.h"
#include "artifact/header.h"
#include "artifact/header_digest.h"
#include "artifact/levels.h"
#include "artifact/sections.h"
#include "buffer_bytes.h"
#include "core/release.h"
#include "program/prepacked.h"
#include "program/processors.h"
#include "triton/model_config.h"
#include "python_executable.h"
#include "without_gil.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace disc {

namespace {

/// (name, offset, length) of each section, once every byte and the header's JSON have been checked.
nb::list sections_of(const nb::object &data) {
  BufferBytes buffer(data);
  Sections sections = without_gil([&] {
    Sections read = read_sections(buffer.bytes());
    level_headers(read);
    return read;
  });
  nb::list rows;
  for (const auto &[name, contents] : sections)
    rows.append(nb::make_tuple(name, contents.data() - buffer.bytes().data(), contents.size()));
  return rows;
}

size_t choose_level_of(const std::vector<nb::bytes> &texts, const std::string &cpu, bool to_run) {
  std::vector<Json> headers;
  for (const nb::bytes &text : texts)
    headers.push_back(parse_header({text.c_str(), text.size()}));
  return choose_level(headers, cpu, to_run);
}

nb::bytes packed_constants(const nb::bytes &header, const nb::object &constants) {
  BufferBytes block(constants);
  std::string packed = without_gil([&] {
    Program program = program_of(parse_header({header.c_str(), header.size()}));
    program.validate(static_cast<int64_t>(block.bytes().size()));
    return pack_constants(default_device()->pool, program, block.bytes());
  });
  return nb::bytes(packed.data(), packed.size());
}

nb::bytes digest_of_header(const nb::bytes &text) {
  Digest digest = header_digest(parse_header({text.c_str(), text.size()}));
  return nb::bytes(digest.data(), digest.size());
}

/// A row of an argument or result: its path, the user's name for it, NumPy's name of its dtype, and its sizes.
using ArrayRow = std::tuple<std::string, std::string, std::string, std::vector<std::string>>;

std::pair<std::string, std::string> triton_config(const std::vector<ArrayRow> &arguments,
                                                  const std::vector<ArrayRow> &results, int64_t max_batch_size) {
  triton::Signature signature;
  std::vector<std::string> names;
  for (const auto &[path, name, dtype, sizes] : arguments) {
    signature.inputs.emplace_back(path, dtype, sizes);
    names.push_back(name);
  }
  for (const auto &[path, name, dtype, sizes] : results)
    signature.outputs.emplace_back(path, dtype, sizes);
  name_tensors(signature, names);
  check_types(signature);
  std::string reason = max_batch_size > 0 ? no_batch_reason(signature) : "";
  if (!reason.empty())
    return {"", reason};
  return {config_text(signature, max_batch_size, max_batch_size > 0 ? "dynamic_batching" : ""), ""};
}

} // namespace

void bind_artifact(nb::module_ &module) {
  module.def("sections_of", &sections_of, nb::arg("data"),
             "(name, offset, length) of each section of an artifact, the header first. Raises ArtifactError on any "
             "damage.");
  module.attr("release") = kRelease;
  module.def("missing_features", &missing_features, nb::arg("features"));
  module.def("choose_level", &choose_level_of, nb::arg("headers"), nb::arg("cpu"), nb::arg("to_run"),
             "The number of the level to run, of those that these headers are of, the least demanding one first: that of "
             "the name `cpu`, or if that is empty, the last one that this processor can run; `to_run`: not only to be read. Raises ArtifactError.");
  module.def("pack_constants", &packed_constants, nb::arg("header"), nb::arg("constants"),
             "The packed forms of a program's constants, as a section of an artifact has them; empty where there are none. "
             "Raises ArtifactError where the header is malformed.");
  module.def("header_digest", &digest_of_header, nb::arg("header"),
             "Digest of the header fields that a program's code depends on: 32 bytes, the same for the artifact as "
             "packed and as plugins serialize it. Raises ArtifactError where it is no JSON object.");
  module.def("triton_config", &triton_config, nb::arg("arguments"), nb::arg("results"), nb::arg("max_batch_size"),
             "A configuration of Triton as JSON, and why the server must not join requests, of which one is empty. Arrays "
             "are (path, name, dtype, sizes). Raises ArtifactError where Triton does not have a dtype.");
  nb::class_<Header>(module, "Header", "The contents of a program's header, except its pytrees.")
      .def("__init__",
           [](Header *self, const nb::bytes &text) {
             new (self) Header(read_header(parse_header({text.c_str(), text.size()})));
           },
           nb::arg("text"), "Raises ArtifactError where it is malformed, or made for another processor.")
      .def_ro("replicas", &Header::replicas);
}

} // namespace disc
