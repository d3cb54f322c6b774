// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "vhlo.h"

#include <unordered_map>

namespace disc::bytecode::vhlo {

const std::vector<std::string_view> *attribute_names(std::string_view op) {
  static const std::unordered_map<std::string_view, std::vector<std::string_view>> table = {
      {"broadcast_in_dim_v1", {"broadcast_dimensions"}},
      {"call_v1", {"callee"}},
      {"cholesky_v1", {"lower"}},
      {"compare_v1", {"compare_type", "comparison_direction"}},
      {"composite_v1", {"composite_attributes", "decomposition", "name", "version"}},
      {"composite_v2", {"composite_attributes", "decomposition", "name", "version"}},
      {"concatenate_v1", {"dimension"}},
      {"constant_v1", {"value"}},
      {"convolution_v1",
       {"batch_group_count", "feature_group_count", "input_batch_dimension", "input_feature_dimension",
        "input_spatial_dimensions", "kernel_input_feature_dimension", "kernel_output_feature_dimension",
        "kernel_spatial_dimensions", "lhs_dilation", "output_batch_dimension", "output_feature_dimension",
        "output_spatial_dimensions", "padding", "precision_config", "rhs_dilation", "window_reversal",
        "window_strides"}},
      {"dot_general_v1",
       {"lhs_batching_dimensions", "lhs_contracting_dimensions", "precision_config", "rhs_batching_dimensions",
        "rhs_contracting_dimensions"}},
      {"dot_general_v2",
       {"accumulation_type", "allow_imprecise_accumulation", "lhs_batching_dimensions", "lhs_component_count",
        "lhs_contracting_dimensions", "lhs_precision_type", "num_primitive_operations", "precision_config",
        "rhs_batching_dimensions", "rhs_component_count", "rhs_contracting_dimensions", "rhs_precision_type"}},
      {"dynamic_slice_v1", {"slice_sizes"}},
      {"fft_v1", {"fft_length", "fft_type"}},
      {"func_v1", {"arg_attrs", "function_type", "res_attrs", "sym_name", "sym_visibility"}},
      {"gather_v1",
       {"collapsed_slice_dims", "index_vector_dim", "indices_are_sorted", "offset_dims", "slice_sizes",
        "start_index_map"}},
      {"gather_v2",
       {"collapsed_slice_dims", "index_vector_dim", "indices_are_sorted", "offset_dims", "operand_batching_dims",
        "slice_sizes", "start_index_map", "start_indices_batching_dims"}},
      {"iota_v1", {"iota_dimension"}},
      {"map_v1", {"dimensions"}},
      {"pad_v1", {"edge_padding_high", "edge_padding_low", "interior_padding"}},
      {"reduce_precision_v1", {"exponent_bits", "mantissa_bits"}},
      {"reduce_v1", {"dimensions"}},
      {"reduce_window_v1", {"base_dilations", "padding", "window_dilations", "window_dimensions", "window_strides"}},
      {"reverse_v1", {"dimensions"}},
      {"rng_bit_generator_v1", {"rng_algorithm"}},
      {"scatter_v1",
       {"index_vector_dim", "indices_are_sorted", "inserted_window_dims", "scatter_dims_to_operand_dims",
        "unique_indices", "update_window_dims"}},
      {"scatter_v2",
       {"index_vector_dim", "indices_are_sorted", "input_batching_dims", "inserted_window_dims",
        "scatter_dims_to_operand_dims", "scatter_indices_batching_dims", "unique_indices", "update_window_dims"}},
      {"select_and_scatter_v1", {"padding", "window_dimensions", "window_strides"}},
      {"slice_v1", {"limit_indices", "start_indices", "strides"}},
      {"sort_v1", {"dimension", "is_stable"}},
      {"transpose_v1", {"permutation"}},
      {"triangular_solve_v1", {"left_side", "lower", "transpose_a", "unit_diagonal"}},
  };
  auto found = table.find(op);
  return found == table.end() ? nullptr : &found->second;
}

} // namespace disc::bytecode::vhlo
