// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// The largest elements are the beginning of a stable sort, with their indices, in total order.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xf32, [@b, @n]>,
// CHECK-SAME: %{{\w+}}: tensor<i64>) -> (tensor<?x?xf32, [@b, @n0]>, tensor<?x?xi32, [@b, @n0]>) {
// CHECK-NOT: custom_call
// CHECK: %[[IOTA:\w+]] = stablehlo.dynamic_iota %{{\w+}}, dim = 1 : (tensor<2xi64>) -> tensor<?x?xi32, [@b, @n]>
// CHECK-NEXT: %[[SORT:\w+]]:2 = "stablehlo.sort"(%[[A]], %[[IOTA]]) <{dimension = 1 : i64, is_stable = true}> ({
// CHECK-NEXT: bb0(%[[E:\w+]]: tensor<f32>, %[[E2:\w+]]: tensor<f32>, %{{\w+}}: tensor<i32>, %{{\w+}}: tensor<i32>):
// CHECK-NEXT: %[[COMPARE:\w+]] = stablehlo.compare GT, %[[E]], %[[E2]], TOTALORDER : (tensor<f32>, tensor<f32>)
// CHECK-SAME: -> tensor<i1>
// CHECK-NEXT: stablehlo.return %[[COMPARE]] : tensor<i1>
// CHECK-NEXT: }) : (tensor<?x?xf32, [@b, @n]>, tensor<?x?xi32, [@b, @n]>)
// CHECK-SAME: -> (tensor<?x?xf32, [@b, @n]>, tensor<?x?xi32, [@b, @n]>)
// CHECK-NOT: custom_call
// CHECK: %[[SLICE:\w+]] = stablehlo.real_dynamic_slice %[[SORT]]#0, %{{\w+}}, %{{\w+}}, %{{\w+}}
// CHECK-SAME: : (tensor<?x?xf32, [@b, @n]>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xf32, [@b, @n0]>
// CHECK-NEXT: %[[SLICE2:\w+]] = stablehlo.real_dynamic_slice %[[SORT]]#1, %{{\w+}}, %{{\w+}}, %{{\w+}}
// CHECK-SAME: : (tensor<?x?xi32, [@b, @n]>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xi32, [@b, @n0]>
// CHECK-NEXT: return %[[SLICE]], %[[SLICE2]] : tensor<?x?xf32, [@b, @n0]>, tensor<?x?xi32, [@b, @n0]>
func.func @main(%x: tensor<?x?xf32, [@b, @n]>, %k: tensor<i64>) -> (tensor<?x?xf32>, tensor<?x?xi32>) {
  %0:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%x, %k)
      : (tensor<?x?xf32, [@b, @n]>, tensor<i64>) -> (tensor<?x?xf32>, tensor<?x?xi32>)
  return %0#0, %0#1 : tensor<?x?xf32>, tensor<?x?xi32>
}

// -----

// Integers need no total order, and where all elements are asked for nothing is cut off.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xi32, [@b, @n]>) -> (tensor<?x?xi32, [@b, @n]>, tensor<?x?xi32, [@b, @n]>) {
// CHECK-NEXT: %[[SHAPE:\w+]] = "disc.shape"() {dims = [@b, @n]} : () -> tensor<2xi64>
// CHECK-NEXT: %[[IOTA:\w+]] = stablehlo.dynamic_iota %[[SHAPE]], dim = 1 : (tensor<2xi64>) -> tensor<?x?xi32, [@b, @n]>
// CHECK-NEXT: %[[SORT:\w+]]:2 = "stablehlo.sort"(%[[A]], %[[IOTA]]) <{dimension = 1 : i64, is_stable = true}> ({
// CHECK-NEXT: bb0(%[[E:\w+]]: tensor<i32>, %[[E2:\w+]]: tensor<i32>, %{{\w+}}: tensor<i32>, %{{\w+}}: tensor<i32>):
// CHECK-NEXT: %[[COMPARE:\w+]] = stablehlo.compare GT, %[[E]], %[[E2]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT: stablehlo.return %[[COMPARE]] : tensor<i1>
// CHECK-NEXT: }) : (tensor<?x?xi32, [@b, @n]>, tensor<?x?xi32, [@b, @n]>)
// CHECK-SAME: -> (tensor<?x?xi32, [@b, @n]>, tensor<?x?xi32, [@b, @n]>)
// CHECK-NEXT: return %[[SORT]]#0, %[[SORT]]#1 : tensor<?x?xi32, [@b, @n]>, tensor<?x?xi32, [@b, @n]>
func.func @main(%x: tensor<?x?xi32, [@b, @n]>) -> (tensor<?x?xi32>, tensor<?x?xi32>) {
  %k = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?xi32, [@b, @n]>) -> tensor<i32>
  %0:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%x, %k)
      : (tensor<?x?xi32, [@b, @n]>, tensor<i32>) -> (tensor<?x?xi32>, tensor<?x?xi32>)
  return %0#0, %0#1 : tensor<?x?xi32>, tensor<?x?xi32>
}

// -----

// An approximation is exact, by the comparator of the call.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x9xf32, [@b, 9]>, %[[B:\w+]]: tensor<?x9xi32, [@b, 9]>, %{{\w+}}: tensor<f32>,
// CHECK-SAME: %{{\w+}}: tensor<i32>) -> (tensor<?x4xf32, [@b, 4]>, tensor<?x4xi32, [@b, 4]>) {
// CHECK-NEXT: %[[SORT:\w+]]:2 = "stablehlo.sort"(%[[A]], %[[B]]) <{dimension = 1 : i64, is_stable = true}> ({
// CHECK-NEXT: bb0(%[[E:\w+]]: tensor<f32>, %[[E2:\w+]]: tensor<f32>, %{{\w+}}: tensor<i32>, %{{\w+}}: tensor<i32>):
// CHECK-NEXT: %[[COMPARE:\w+]] = stablehlo.compare GT, %[[E]], %[[E2]] : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT: stablehlo.return %[[COMPARE]] : tensor<i1>
// CHECK-NEXT: }) : (tensor<?x9xf32, [@b, 9]>, tensor<?x9xi32, [@b, 9]>)
// CHECK-SAME: -> (tensor<?x9xf32, [@b, 9]>, tensor<?x9xi32, [@b, 9]>)
// CHECK-NOT: custom_call
// CHECK: %[[SLICE:\w+]] = stablehlo.real_dynamic_slice %[[SORT]]#0, %{{\w+}}, %{{\w+}}, %{{\w+}}
// CHECK-SAME: : (tensor<?x9xf32, [@b, 9]>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x4xf32, [@b, 4]>
// CHECK-NEXT: %[[SLICE2:\w+]] = stablehlo.real_dynamic_slice %[[SORT]]#1, %{{\w+}}, %{{\w+}}, %{{\w+}}
// CHECK-SAME: : (tensor<?x9xi32, [@b, 9]>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x4xi32, [@b, 4]>
// CHECK-NEXT: return %[[SLICE]], %[[SLICE2]] : tensor<?x4xf32, [@b, 4]>, tensor<?x4xi32, [@b, 4]>
func.func private @falls(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func @main(%x: tensor<?x9xf32, [@b, 9]>, %i: tensor<?x9xi32, [@b, 9]>, %u: tensor<f32>, %v: tensor<i32>)
    -> (tensor<?x4xf32>, tensor<?x4xi32>) {
  %0:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %u, %v)
      {called_computations = [@falls], mhlo.backend_config = {reduction_dim = 1 : i64}}
      : (tensor<?x9xf32, [@b, 9]>, tensor<?x9xi32, [@b, 9]>, tensor<f32>, tensor<i32>)
      -> (tensor<?x4xf32>, tensor<?x4xi32>)
  return %0#0, %0#1 : tensor<?x4xf32>, tensor<?x4xi32>
}

// -----

// Along another axis, with sizes that are operands.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xf32, [@n, @b]>, %[[B:\w+]]: tensor<?x?xi32, [@n, @b]>, %{{\w+}}: tensor<f32>,
// CHECK-SAME: %{{\w+}}: tensor<i32>) -> (tensor<4x?xf32, [4, @b]>, tensor<4x?xi32, [4, @b]>) {
// CHECK-NEXT: %[[TRANSPOSE:\w+]] = stablehlo.transpose %[[A]], dims = [1, 0] : (tensor<?x?xf32, [@n, @b]>)
// CHECK-SAME: -> tensor<?x?xf32, [@b, @n]>
// CHECK-NEXT: %[[TRANSPOSE2:\w+]] = stablehlo.transpose %[[B]], dims = [1, 0] : (tensor<?x?xi32, [@n, @b]>)
// CHECK-SAME: -> tensor<?x?xi32, [@b, @n]>
// CHECK-NEXT: %[[SORT:\w+]]:2 = "stablehlo.sort"(%[[TRANSPOSE]],
// CHECK-SAME: %[[TRANSPOSE2]]) <{dimension = 1 : i64, is_stable = true}> ({
// CHECK-NEXT: bb0(%[[E:\w+]]: tensor<f32>, %[[E2:\w+]]: tensor<f32>, %{{\w+}}: tensor<i32>, %{{\w+}}: tensor<i32>):
// CHECK-NEXT: %[[COMPARE:\w+]] = stablehlo.compare GT, %[[E]], %[[E2]] : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT: stablehlo.return %[[COMPARE]] : tensor<i1>
// CHECK-NEXT: }) : (tensor<?x?xf32, [@b, @n]>, tensor<?x?xi32, [@b, @n]>)
// CHECK-SAME: -> (tensor<?x?xf32, [@b, @n]>, tensor<?x?xi32, [@b, @n]>)
// CHECK-NEXT: %[[TRANSPOSE3:\w+]] = stablehlo.transpose %[[SORT]]#0, dims = [1, 0] : (tensor<?x?xf32, [@b, @n]>)
// CHECK-SAME: -> tensor<?x?xf32, [@n, @b]>
// CHECK-NEXT: %[[TRANSPOSE4:\w+]] = stablehlo.transpose %[[SORT]]#1, dims = [1, 0] : (tensor<?x?xi32, [@b, @n]>)
// CHECK-SAME: -> tensor<?x?xi32, [@n, @b]>
// CHECK-NOT: custom_call
// CHECK: %[[SLICE:\w+]] = stablehlo.real_dynamic_slice %[[TRANSPOSE3]], %{{\w+}}, %{{\w+}}, %{{\w+}}
// CHECK-SAME: : (tensor<?x?xf32, [@n, @b]>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<4x?xf32, [4, @b]>
// CHECK-NEXT: %[[SLICE2:\w+]] = stablehlo.real_dynamic_slice %[[TRANSPOSE4]], %{{\w+}}, %{{\w+}}, %{{\w+}}
// CHECK-SAME: : (tensor<?x?xi32, [@n, @b]>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<4x?xi32, [4, @b]>
// CHECK-NEXT: return %[[SLICE]], %[[SLICE2]] : tensor<4x?xf32, [4, @b]>, tensor<4x?xi32, [4, @b]>
func.func private @falls(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func @main(%x: tensor<?x?xf32, [@n, @b]>, %i: tensor<?x?xi32, [@n, @b]>, %u: tensor<f32>, %v: tensor<i32>)
    -> (tensor<4x?xf32>, tensor<4x?xi32>) {
  %four = stablehlo.constant dense<4> : tensor<1xi32>
  %b = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?xf32, [@n, @b]>) -> tensor<i32>
  %b1 = stablehlo.reshape %b : (tensor<i32>) -> tensor<1xi32>
  %s = stablehlo.concatenate %four, %b1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %0:2 = stablehlo.custom_call @stablehlo.dynamic_approx_top_k(%x, %i, %u, %v, %s, %s)
      {called_computations = [@falls],
      indices_of_shape_operands = dense<[4, 5]> : tensor<2xi64>,
      mhlo.backend_config = {reduction_dim = 0 : i64}}
      : (tensor<?x?xf32, [@n, @b]>, tensor<?x?xi32, [@n, @b]>, tensor<f32>, tensor<i32>, tensor<2xi32>,
      tensor<2xi32>) -> (tensor<4x?xf32>, tensor<4x?xi32>)
  return %0#0, %0#1 : tensor<4x?xf32>, tensor<4x?xi32>
}

// -----

// A call has to name its axis.
// CHECK-LABEL: error: 1 unsupported construct(s):
// CHECK-NEXT: stablehlo.custom_call @ApproxTopK at line {{[0-9]+}}: a top-k that does not name its dimension has no lowering
func.func private @falls(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func @main(%x: tensor<?x9xf32, [@b, 9]>, %i: tensor<?x9xi32, [@b, 9]>, %u: tensor<f32>, %v: tensor<i32>)
    -> (tensor<?x4xf32>, tensor<?x4xi32>) {
  %0:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %u, %v) {called_computations = [@falls]}
      : (tensor<?x9xf32, [@b, 9]>, tensor<?x9xi32, [@b, 9]>, tensor<f32>, tensor<i32>)
      -> (tensor<?x4xf32>, tensor<?x4xi32>)
  return %0#0, %0#1 : tensor<?x4xf32>, tensor<?x4xi32>
}

// -----

// A call has to name its comparator.
// CHECK-LABEL: error: 1 unsupported construct(s):
// CHECK-NEXT: stablehlo.custom_call @ApproxTopK at line {{[0-9]+}}: a custom call without its computation has no lowering
func.func private @falls(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func @main(%x: tensor<?x9xf32, [@b, 9]>, %i: tensor<?x9xi32, [@b, 9]>, %u: tensor<f32>, %v: tensor<i32>)
    -> (tensor<?x4xf32>, tensor<?x4xi32>) {
  %0:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %u, %v) {mhlo.backend_config = {reduction_dim = 1 : i64}}
      : (tensor<?x9xf32, [@b, 9]>, tensor<?x9xi32, [@b, 9]>, tensor<f32>, tensor<i32>)
      -> (tensor<?x4xf32>, tensor<?x4xi32>)
  return %0#0, %0#1 : tensor<?x4xf32>, tensor<?x4xi32>
}

// -----

// There are no more elements than the axis has.
// CHECK-LABEL: error: stablehlo.custom_call at line {{[0-9]+}}: 9 >= 10 must hold and never does
func.func @main(%x: tensor<?x9xf32, [@b, 9]>) -> (tensor<?x10xf32>, tensor<?x10xi32>) {
  %k = stablehlo.constant dense<10> : tensor<i64>
  %0:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%x, %k)
      : (tensor<?x9xf32, [@b, 9]>, tensor<i64>) -> (tensor<?x10xf32>, tensor<?x10xi32>)
  return %0#0, %0#1 : tensor<?x10xf32>, tensor<?x10xi32>
}

// -----

// The smallest elements, as many as an attribute says, are the beginning of a rising sort.
// CHECK-LABEL: func.func @main(
// CHECK: stablehlo.compare LT, %{{\w+}}, %{{\w+}}, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NOT: custom_call
// CHECK: return %{{\w+}}, %{{\w+}} : tensor<?x2xf32, [@b, 2]>, tensor<?x2xi32, [@b, 2]>
func.func @main(%x: tensor<?x9xf32, [@b, 9]>) -> (tensor<?x2xf32>, tensor<?x2xi32>) {
  %0:2 = stablehlo.custom_call @mhlo.topk(%x) {mhlo.attributes = {k = 2 : i64, largest = false}}
    : (tensor<?x9xf32, [@b, 9]>) -> (tensor<?x2xf32>, tensor<?x2xi32>)
  return %0#0, %0#1 : tensor<?x2xf32>, tensor<?x2xi32>
}
