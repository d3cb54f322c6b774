// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor maps: what the copies of boxes of tensors (TMA) are told of the memory that they read.
#pragma once

#include "core/abi.h"
#include "core/device.h"
#include "driver.h"

#include <array>
#include <optional>
#include <span>
#include <vector>

namespace disc::cuda {

/// The maps of both sides of a product of elements of one or two bytes, for the kernel that a spec tells of. None where a side
/// cannot be described: it has no elements, does not begin at a multiple of 16 bytes or takes steps that are none, has
/// rows that overlap, is too large, or is refused by the driver, whose rules are its own. The GPU's context has to be the
/// current one. Throws Error(device) for other errors of the driver.
std::optional<std::array<TensorMap, 2>> tensor_maps_of(const DiscProduct &product, const KernelByMaps &spec);

/// The maps of the operands of a launch with these words, for the kernel that a spec tells of, as above. None, too, where
/// the first operand has fewer rows than the kernel is for.
std::optional<std::vector<TensorMap>> tensor_maps_of(std::span<const int64_t> words, const KernelByMapsOfWords &spec);

} // namespace disc::cuda
