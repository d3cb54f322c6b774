// RUN: opt --stage annotate --split-input-file %s | filecheck %s

// By rows, the result has the rows of lhs and the columns of rhs.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: func.func @main({{.*}}) -> tensor<?x?xf32, [@m, @n]>
func.func @main(%x: tensor<?x?xf32, [@m, @k]>, %w: tensor<4x?x?xf32, [4, @k, @n]>, %s: tensor<4xi32>) -> tensor<?x?xf32> {
  %0 = stablehlo.custom_call @shlo_disc.ragged_dot(%x, %w, %s) {backend_config = {contracts = 0 : i64, lhs_flipped = 0 : i64, rhs_flipped = 0 : i64}, api_version = 4 : i32} : (tensor<?x?xf32, [@m, @k]>, tensor<4x?x?xf32, [4, @k, @n]>, tensor<4xi32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// With flipped operands, rows and columns are the other axes.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: func.func @main({{.*}}) -> tensor<?x?xf32, [@m, @n]>
func.func @main(%x: tensor<?x?xf32, [@k, @m]>, %w: tensor<4x?x?xf32, [4, @n, @k]>, %s: tensor<4xi32>) -> tensor<?x?xf32> {
  %0 = stablehlo.custom_call @shlo_disc.ragged_dot(%x, %w, %s) {backend_config = {contracts = 0 : i64, lhs_flipped = 1 : i64, rhs_flipped = 1 : i64}, api_version = 4 : i32} : (tensor<?x?xf32, [@k, @m]>, tensor<4x?x?xf32, [4, @n, @k]>, tensor<4xi32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// By contraction, there is a matrix for each group.
// CHECK-LABEL: module attributes {
// CHECK-NEXT: "disc.signature"()
// CHECK: func.func @main({{.*}}) -> tensor<?x?x?xf32, [@g, @k, @n]>
func.func @main(%x: tensor<?x?xf32, [@m, @k]>, %y: tensor<?x?xf32, [@m, @n]>, %s: tensor<?xi32, [@g]>) -> tensor<?x?x?xf32> {
  %0 = stablehlo.custom_call @shlo_disc.ragged_dot(%x, %y, %s) {backend_config = {contracts = 1 : i64, lhs_flipped = 0 : i64, rhs_flipped = 0 : i64}, api_version = 4 : i32} : (tensor<?x?xf32, [@m, @k]>, tensor<?x?xf32, [@m, @n]>, tensor<?xi32, [@g]>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}

// -----

// There are as many sizes as matrices, and the terms of both sides are the same.
// CHECK: error: stablehlo.custom_call at line {{[0-9]+}}: the sizes 7 and 8 must be equal and never are
func.func @main(%x: tensor<?x7xf32, [@m, 7]>, %w: tensor<4x8x5xf32>, %s: tensor<4xi32>) -> tensor<?x5xf32> {
  %0 = stablehlo.custom_call @shlo_disc.ragged_dot(%x, %w, %s) {backend_config = {contracts = 0 : i64, lhs_flipped = 0 : i64, rhs_flipped = 0 : i64}, api_version = 4 : i32} : (tensor<?x7xf32, [@m, 7]>, tensor<4x8x5xf32>, tensor<4xi32>) -> tensor<?x5xf32>
  return %0 : tensor<?x5xf32>
}
