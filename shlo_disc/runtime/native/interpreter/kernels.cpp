// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "op.h"

namespace disc::interpreter {

Kernel kernel_of(const Op &op) {
  for (const KernelTable *table : {&elementwise_kernels(), &movement_kernels(), &indexing_kernels(),
                                   &reduction_kernels(), &product_kernels(), &library_kernels()})
    if (auto found = table->find(op.name); found != table->end())
      return found->second(op);
  throw Unsupported("there is no kernel for an op");
}

} // namespace disc::interpreter
