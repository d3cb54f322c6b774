// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// `broadcast` adds axes in front.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>) -> tensor<2x3x?xf32, [2, 3, @n]> {
// CHECK-NEXT: %[[SHAPE:\w+]] = "disc.shape"() {dims = [2, 3, @n]} : () -> tensor<3xi64>
// CHECK-NEXT: %[[BROADCAST:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[A]], %[[SHAPE]], dims = [2]
// CHECK-SAME: : (tensor<?xf32, [@n]>, tensor<3xi64>) -> tensor<2x3x?xf32, [2, 3, @n]>
// CHECK-NEXT: return %[[BROADCAST]] : tensor<2x3x?xf32, [2, 3, @n]>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<2x3x?xf32> {
  %0 = "stablehlo.broadcast"(%x) <{broadcast_sizes = array<i64: 2, 3>}> : (tensor<?xf32, [@n]>) -> tensor<2x3x?xf32>
  return %0 : tensor<2x3x?xf32>
}

// -----

// One that adds none is its operand.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>) -> tensor<?xf32, [@n]> {
// CHECK-NEXT: return %[[A]] : tensor<?xf32, [@n]>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %0 = "stablehlo.broadcast"(%x) <{broadcast_sizes = array<i64>}> : (tensor<?xf32, [@n]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// `dot` of matrices is the last axis against the first.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xf32, [@m, @k]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf32, [@m, @n]> {
// CHECK-NEXT: %[[DOT:\w+]] = stablehlo.dot_general %[[A]], %[[B]], contracting_dims = [1] x [0]
// CHECK-SAME: : (tensor<?x?xf32, [@m, @k]>, tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf32, [@m, @n]>
// CHECK-NEXT: return %[[DOT]] : tensor<?x?xf32, [@m, @n]>
func.func @main(%x: tensor<?x?xf32, [@m, @k]>, %y: tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf32> {
  %0 = stablehlo.dot %x, %y : (tensor<?x?xf32, [@m, @k]>, tensor<?x?xf32, [@k, @n]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// `dot` of a vector and a matrix.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@k]>, %[[B:\w+]]: tensor<?x?xf32, [@k, @n]>) -> tensor<?xf32, [@n]> {
// CHECK-NEXT: %[[DOT:\w+]] = stablehlo.dot_general %[[A]], %[[B]], contracting_dims = [0] x [0]
// CHECK-SAME: : (tensor<?xf32, [@k]>, tensor<?x?xf32, [@k, @n]>) -> tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[DOT]] : tensor<?xf32, [@n]>
func.func @main(%x: tensor<?xf32, [@k]>, %y: tensor<?x?xf32, [@k, @n]>) -> tensor<?xf32> {
  %0 = stablehlo.dot %x, %y : (tensor<?xf32, [@k]>, tensor<?x?xf32, [@k, @n]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// `dot` of a matrix and a vector.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xf32, [@m, @k]>, %[[B:\w+]]: tensor<?xf32, [@k]>) -> tensor<?xf32, [@m]> {
// CHECK-NEXT: %[[DOT:\w+]] = stablehlo.dot_general %[[A]], %[[B]], contracting_dims = [1] x [0]
// CHECK-SAME: : (tensor<?x?xf32, [@m, @k]>, tensor<?xf32, [@k]>) -> tensor<?xf32, [@m]>
// CHECK-NEXT: return %[[DOT]] : tensor<?xf32, [@m]>
func.func @main(%x: tensor<?x?xf32, [@m, @k]>, %y: tensor<?xf32, [@k]>) -> tensor<?xf32> {
  %0 = stablehlo.dot %x, %y : (tensor<?x?xf32, [@m, @k]>, tensor<?xf32, [@k]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// `dot` of two vectors is a scalar, a sum of products.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@k]>, %[[B:\w+]]: tensor<?xf32, [@k]>) -> tensor<f32> {
// CHECK-NOT: stablehlo.dot
// CHECK: %[[TERMS:\w+]] = stablehlo.multiply %[[A]], %[[B]] : tensor<?xf32, [@k]>
// CHECK-NEXT: %[[SUM:\w+]] = stablehlo.reduce(%[[TERMS]] init: %{{.*}}) applies stablehlo.add across dimensions = [0]
// CHECK-NEXT: return %[[SUM]] : tensor<f32>
func.func @main(%x: tensor<?xf32, [@k]>, %y: tensor<?xf32, [@k]>) -> tensor<f32> {
  %0 = stablehlo.dot %x, %y : (tensor<?xf32, [@k]>, tensor<?xf32, [@k]>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// `einsum`: a letter of one operand only is summed first, and the result's letters are put in order.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?x?xf32, [@b, @m, @k]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?x?x?x?xf32, [@b, @k, @n, @z]>) -> tensor<?x?x?xf32, [@b, @n, @m]> {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NOT: einsum
// CHECK: %[[REDUCE:\w+]] = stablehlo.reduce(%[[B]] init: %[[CONSTANT]]) applies stablehlo.add
// CHECK-SAME: across dimensions = [3] : (tensor<?x?x?x?xf32, [@b, @k, @n, @z]>, tensor<f32>)
// CHECK-SAME: -> tensor<?x?x?xf32, [@b, @k, @n]>
// CHECK-NEXT: %[[DOT:\w+]] = stablehlo.dot_general %[[A]],
// CHECK-SAME: %[[REDUCE]], batching_dims = [0] x [0], contracting_dims = [2] x [1]
// CHECK-SAME: : (tensor<?x?x?xf32, [@b, @m, @k]>, tensor<?x?x?xf32, [@b, @k, @n]>) -> tensor<?x?x?xf32, [@b, @m, @n]>
// CHECK-NEXT: %[[TRANSPOSE:\w+]] = stablehlo.transpose %[[DOT]], dims = [0, 2, 1]
// CHECK-SAME: : (tensor<?x?x?xf32, [@b, @m, @n]>) -> tensor<?x?x?xf32, [@b, @n, @m]>
// CHECK-NEXT: return %[[TRANSPOSE]] : tensor<?x?x?xf32, [@b, @n, @m]>
func.func @main(%x: tensor<?x?x?xf32, [@b, @m, @k]>, %y: tensor<?x?x?x?xf32, [@b, @k, @n, @z]>) -> tensor<?x?x?xf32> {
  %0 = "stablehlo.einsum"(%x, %y) <{einsum_config = "bmk,bknz->bnm"}>
      : (tensor<?x?x?xf32, [@b, @m, @k]>, tensor<?x?x?x?xf32, [@b, @k, @n, @z]>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}

// -----

// `unary_einsum` is a sum and a transpose.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?x?xf32, [@a, @b, @c]>) -> tensor<?x?xf32, [@c, @a]> {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NOT: einsum
// CHECK: %[[REDUCE:\w+]] = stablehlo.reduce(%[[A]] init: %[[CONSTANT]]) applies stablehlo.add
// CHECK-SAME: across dimensions = [1] : (tensor<?x?x?xf32, [@a, @b, @c]>, tensor<f32>) -> tensor<?x?xf32, [@a, @c]>
// CHECK-NEXT: %[[TRANSPOSE:\w+]] = stablehlo.transpose %[[REDUCE]], dims = [1, 0] : (tensor<?x?xf32, [@a, @c]>)
// CHECK-SAME: -> tensor<?x?xf32, [@c, @a]>
// CHECK-NEXT: return %[[TRANSPOSE]] : tensor<?x?xf32, [@c, @a]>
func.func @main(%x: tensor<?x?x?xf32, [@a, @b, @c]>) -> tensor<?x?xf32> {
  %0 = "stablehlo.unary_einsum"(%x) <{einsum_config = "abc->ca"}>
      : (tensor<?x?x?xf32, [@a, @b, @c]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// An einsum that takes a diagonal is refused.
// CHECK-LABEL: error: 1 unsupported construct(s):
// CHECK-NEXT: stablehlo.unary_einsum at line {{[0-9]+}}: an einsum of 'aa->a' has no lowering
func.func @main(%x: tensor<?x?xf32, [@a, @b]>) -> tensor<?xf32> {
  %0 = "stablehlo.unary_einsum"(%x) <{einsum_config = "aa->a"}> : (tensor<?x?xf32, [@a, @b]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// `torch_index_select` gathers slices of one element along an axis; batches are batches of the gather.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?x?xf32, [@a, @b, @c]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?x?xi32, [@a, @k]>) -> tensor<?x?x?xf32, [@a, @k, @c]> {
// CHECK-NEXT: %[[SHAPE:\w+]] = "disc.shape"() {dims = [1, 1, @c]} : () -> tensor<3xi64>
// CHECK-NEXT: %[[GATHER:\w+]] = "stablehlo.dynamic_gather"(%[[A]], %[[B]],
// CHECK-SAME: %[[SHAPE]]) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1],
// CHECK-SAME: operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1],
// CHECK-SAME: index_vector_dim = 2>}> : (tensor<?x?x?xf32, [@a, @b, @c]>, tensor<?x?xi32, [@a, @k]>, tensor<3xi64>)
// CHECK-SAME: -> tensor<?x?x?xf32, [@a, @k, @c]>
// CHECK-NEXT: return %[[GATHER]] : tensor<?x?x?xf32, [@a, @k, @c]>
func.func @main(%x: tensor<?x?x?xf32, [@a, @b, @c]>, %i: tensor<?x?xi32, [@a, @k]>) -> tensor<?x?x?xf32> {
  %0 = "stablehlo.torch_index_select"(%x, %i) <{dim = 1 : i64, batch_dims = 1 : i64}>
      : (tensor<?x?x?xf32, [@a, @b, @c]>, tensor<?x?xi32, [@a, @k]>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}

// -----

// Without batches, the axes before the selected one come first.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xf32, [@a, @b]>, %[[B:\w+]]: tensor<?xi64, [@k]>) -> tensor<?x?xf32, [@a, @k]> {
// CHECK-NEXT: %[[SHAPE:\w+]] = "disc.shape"() {dims = [@a, 1]} : () -> tensor<2xi64>
// CHECK-NEXT: %[[GATHER:\w+]] = "stablehlo.dynamic_gather"(%[[A]], %[[B]],
// CHECK-SAME: %[[SHAPE]]) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1],
// CHECK-SAME: start_index_map = [1], index_vector_dim = 1>}>
// CHECK-SAME: : (tensor<?x?xf32, [@a, @b]>, tensor<?xi64, [@k]>, tensor<2xi64>) -> tensor<?x?xf32, [@a, @k]>
// CHECK-NEXT: return %[[GATHER]] : tensor<?x?xf32, [@a, @k]>
func.func @main(%x: tensor<?x?xf32, [@a, @b]>, %i: tensor<?xi64, [@k]>) -> tensor<?x?xf32> {
  %0 = "stablehlo.torch_index_select"(%x, %i) <{dim = 1 : i64, batch_dims = 0 : i64}>
      : (tensor<?x?xf32, [@a, @b]>, tensor<?xi64, [@k]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
