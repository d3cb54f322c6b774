// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// A call of the runtime, whose workspace has the first row and the first block of each group, and of the end.
// CHECK-LABEL: func.func @main(
// CHECK: stablehlo.custom_call @ragged_dot(%{{\w+}}, %{{\w+}}, %{{\w+}})
// CHECK-SAME: parameters = {contracts = 0 : i64, lhs_flipped = 0 : i64, rhs_flipped = 1 : i64, vector_bits = {{[0-9]+}} : i64}
// CHECK-SAME: -> (tensor<?x5xf32, [@m, 5]>, tensor<80xui8>)
func.func @main(%x: tensor<?x7xf32, [@m, 7]>, %w: tensor<4x5x7xf32>, %s: tensor<4xi32>) -> tensor<?x5xf32> {
  %0 = stablehlo.custom_call @shlo_disc.ragged_dot(%x, %w, %s) {backend_config = {contracts = 0 : i64, lhs_flipped = 0 : i64, rhs_flipped = 1 : i64}, api_version = 4 : i32} : (tensor<?x7xf32, [@m, 7]>, tensor<4x5x7xf32>, tensor<4xi32>) -> tensor<?x5xf32>
  return %0 : tensor<?x5xf32>
}

// -----

// Transposes of matrices are none: the operand is read the other way round.
// CHECK-LABEL: func.func @main(
// CHECK-NOT: stablehlo.transpose
// CHECK: stablehlo.custom_call @ragged_dot(%{{\w+}}, %{{\w+}}, %{{\w+}})
// CHECK-SAME: parameters = {contracts = 0 : i64, lhs_flipped = 1 : i64, rhs_flipped = 1 : i64, vector_bits = {{[0-9]+}} : i64}
// CHECK-NOT: stablehlo.transpose
func.func @main(%x: tensor<7x?xf32, [7, @m]>, %w: tensor<4x5x7xf32>, %s: tensor<4xi32>) -> tensor<?x5xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<7x?xf32, [7, @m]>) -> tensor<?x7xf32>
  %1 = stablehlo.transpose %w, dims = [0, 2, 1] : (tensor<4x5x7xf32>) -> tensor<4x7x5xf32>
  %2 = stablehlo.custom_call @shlo_disc.ragged_dot(%0, %1, %s) {backend_config = {contracts = 0 : i64, lhs_flipped = 0 : i64, rhs_flipped = 0 : i64}, api_version = 4 : i32} : (tensor<?x7xf32>, tensor<4x7x5xf32>, tensor<4xi32>) -> tensor<?x5xf32>
  return %2 : tensor<?x5xf32>
}

// -----

// One that moves the groups stays: the matrices do not lie one behind the other.
// CHECK-LABEL: func.func @main(
// CHECK: stablehlo.transpose %{{\w+}}, dims = [1, 0, 2]
// CHECK: stablehlo.custom_call @ragged_dot
// CHECK-SAME: rhs_flipped = 0 : i64
func.func @main(%x: tensor<?x7xf32, [@m, 7]>, %w: tensor<7x4x5xf32>, %s: tensor<4xi32>) -> tensor<?x5xf32> {
  %0 = stablehlo.transpose %w, dims = [1, 0, 2] : (tensor<7x4x5xf32>) -> tensor<4x7x5xf32>
  %1 = stablehlo.custom_call @shlo_disc.ragged_dot(%x, %0, %s) {backend_config = {contracts = 0 : i64, lhs_flipped = 0 : i64, rhs_flipped = 0 : i64}, api_version = 4 : i32} : (tensor<?x7xf32, [@m, 7]>, tensor<4x7x5xf32>, tensor<4xi32>) -> tensor<?x5xf32>
  return %1 : tensor<?x5xf32>
}
