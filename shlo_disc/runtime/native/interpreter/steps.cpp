// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "steps.h"

#include <alloca.h>
#include <cstring>

namespace disc::interpreter {

namespace {

constexpr int64_t trip_work = 20;

void copy_all(const std::vector<Copy> &copies, const Run &run) {
  for (const Copy &copy : copies)
    copy.run(run);
}

} // namespace

void Copy::run(const Run &run) const {
  if (bytes != 0)
    std::memcpy(run.addresses[to], run.addresses[from], static_cast<size_t>(bytes));
}

void KernelStep::run(Run &run) const {
  run.count(work);
  auto **in = static_cast<const void **>(alloca(inputs.size() * sizeof(void *) + 1));
  auto **out = static_cast<void **>(alloca(outputs.size() * sizeof(void *) + 1));
  for (size_t i = 0; i < inputs.size(); ++i)
    in[i] = run.addresses[inputs[i]];
  for (size_t i = 0; i < outputs.size(); ++i)
    out[i] = run.addresses[outputs[i]];
  kernel(in, out);
}

void UnsupportedStep::run(Run &) const { throw Unsupported(reason); }

void BranchStep::run(Run &run) const {
  const void *chosen = run.addresses[index];
  auto last = static_cast<int32_t>(branches.size()) - 1;
  int32_t number = 0;
  if (is_boolean)
    number = *static_cast<const uint8_t *>(chosen) ? 0 : 1;
  else
    std::memcpy(&number, chosen, sizeof number);
  const Branch &branch = branches[static_cast<size_t>(number < 0 || number > last ? last : number)];
  run.count(trip_work);
  run_all(branch.steps, run);
  copy_all(branch.results, run);
}

void WhileStep::run(Run &run) const {
  copy_all(carried, run);
  for (;;) {
    run.count(trip_work);
    run_all(condition, run);
    if (!*static_cast<const uint8_t *>(run.addresses[holds]))
      return;
    run_all(body, run);
    copy_all(saved, run);
    copy_all(next, run);
  }
}

} // namespace disc::interpreter
