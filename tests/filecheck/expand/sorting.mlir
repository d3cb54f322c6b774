// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// Another axis is the last one between transposes, of every operand and result.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xf32, [@a, @b]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?x?xi32, [@a, @b]>) -> (tensor<?x?xf32, [@a, @b]>, tensor<?x?xi32, [@a, @b]>) {
// CHECK-NEXT: %[[TRANSPOSE:\w+]] = stablehlo.transpose %[[A]], dims = [1, 0] : (tensor<?x?xf32, [@a, @b]>)
// CHECK-SAME: -> tensor<?x?xf32, [@b, @a]>
// CHECK-NEXT: %[[TRANSPOSE2:\w+]] = stablehlo.transpose %[[B]], dims = [1, 0] : (tensor<?x?xi32, [@a, @b]>)
// CHECK-SAME: -> tensor<?x?xi32, [@b, @a]>
// CHECK-NEXT: %[[SORT:\w+]]:2 = "stablehlo.sort"(%[[TRANSPOSE]],
// CHECK-SAME: %[[TRANSPOSE2]]) <{dimension = 1 : i64, is_stable = true}> ({
// CHECK-NEXT: bb0(%[[E:\w+]]: tensor<f32>, %[[E2:\w+]]: tensor<f32>, %{{\w+}}: tensor<i32>, %{{\w+}}: tensor<i32>):
// CHECK-NEXT: %[[COMPARE:\w+]] = stablehlo.compare GT, %[[E]], %[[E2]] : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT: stablehlo.return %[[COMPARE]] : tensor<i1>
// CHECK-NEXT: }) : (tensor<?x?xf32, [@b, @a]>, tensor<?x?xi32, [@b, @a]>)
// CHECK-SAME: -> (tensor<?x?xf32, [@b, @a]>, tensor<?x?xi32, [@b, @a]>)
// CHECK-NEXT: %[[TRANSPOSE3:\w+]] = stablehlo.transpose %[[SORT]]#0, dims = [1, 0] : (tensor<?x?xf32, [@b, @a]>)
// CHECK-SAME: -> tensor<?x?xf32, [@a, @b]>
// CHECK-NEXT: %[[TRANSPOSE4:\w+]] = stablehlo.transpose %[[SORT]]#1, dims = [1, 0] : (tensor<?x?xi32, [@b, @a]>)
// CHECK-SAME: -> tensor<?x?xi32, [@a, @b]>
// CHECK-NEXT: return %[[TRANSPOSE3]], %[[TRANSPOSE4]] : tensor<?x?xf32, [@a, @b]>, tensor<?x?xi32, [@a, @b]>
func.func @main(%x: tensor<?x?xf32, [@a, @b]>, %i: tensor<?x?xi32, [@a, @b]>) -> (tensor<?x?xf32>, tensor<?x?xi32>) {
  %0:2 = "stablehlo.sort"(%x, %i) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>, %r: tensor<i32>, %s: tensor<i32>):
    %1 = stablehlo.compare GT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<?x?xf32, [@a, @b]>, tensor<?x?xi32, [@a, @b]>) -> (tensor<?x?xf32>, tensor<?x?xi32>)
  return %0#0, %0#1 : tensor<?x?xf32>, tensor<?x?xi32>
}

// -----

// An axis may be counted from the end.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?x?xf32, [@a, @b, @c]>) -> tensor<?x?x?xf32, [@a, @b, @c]> {
// CHECK-NEXT: %[[TRANSPOSE:\w+]] = stablehlo.transpose %[[A]], dims = [0, 2, 1] : (tensor<?x?x?xf32, [@a, @b, @c]>)
// CHECK-SAME: -> tensor<?x?x?xf32, [@a, @c, @b]>
// CHECK-NEXT: %[[SORT:\w+]] = "stablehlo.sort"(%[[TRANSPOSE]]) <{dimension = 2 : i64}> ({
// CHECK-NEXT: bb0(%[[E:\w+]]: tensor<f32>, %[[E2:\w+]]: tensor<f32>):
// CHECK-NEXT: %[[COMPARE:\w+]] = stablehlo.compare LT, %[[E]], %[[E2]] : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT: stablehlo.return %[[COMPARE]] : tensor<i1>
// CHECK-NEXT: }) : (tensor<?x?x?xf32, [@a, @c, @b]>) -> tensor<?x?x?xf32, [@a, @c, @b]>
// CHECK-NEXT: %[[TRANSPOSE2:\w+]] = stablehlo.transpose %[[SORT]], dims = [0, 2, 1]
// CHECK-SAME: : (tensor<?x?x?xf32, [@a, @c, @b]>) -> tensor<?x?x?xf32, [@a, @b, @c]>
// CHECK-NEXT: return %[[TRANSPOSE2]] : tensor<?x?x?xf32, [@a, @b, @c]>
func.func @main(%x: tensor<?x?x?xf32, [@a, @b, @c]>) -> tensor<?x?x?xf32> {
  %0 = "stablehlo.sort"(%x) <{dimension = -2 : i64}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %1 = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<?x?x?xf32, [@a, @b, @c]>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}

// -----

// A sort along the last axis stays.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xf32, [@a, @b]>) -> tensor<?x?xf32, [@a, @b]> {
// CHECK-NEXT: %[[SORT:\w+]] = "stablehlo.sort"(%[[A]]) <{dimension = 1 : i64}> ({
// CHECK-NEXT: bb0(%[[E:\w+]]: tensor<f32>, %[[E2:\w+]]: tensor<f32>):
// CHECK-NEXT: %[[COMPARE:\w+]] = stablehlo.compare LT, %[[E]], %[[E2]] : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT: stablehlo.return %[[COMPARE]] : tensor<i1>
// CHECK-NEXT: }) : (tensor<?x?xf32, [@a, @b]>) -> tensor<?x?xf32, [@a, @b]>
// CHECK-NEXT: return %[[SORT]] : tensor<?x?xf32, [@a, @b]>
func.func @main(%x: tensor<?x?xf32, [@a, @b]>) -> tensor<?x?xf32> {
  %0 = "stablehlo.sort"(%x) <{dimension = 1 : i64}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %1 = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<?x?xf32, [@a, @b]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// So does one along the last axis from the end.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xf32, [@a, @b]>) -> tensor<?x?xf32, [@a, @b]> {
// CHECK-NEXT: %[[SORT:\w+]] = "stablehlo.sort"(%[[A]]) <{dimension = -1 : i64}> ({
// CHECK-NEXT: bb0(%[[E:\w+]]: tensor<f32>, %[[E2:\w+]]: tensor<f32>):
// CHECK-NEXT: %[[COMPARE:\w+]] = stablehlo.compare LT, %[[E]], %[[E2]] : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT: stablehlo.return %[[COMPARE]] : tensor<i1>
// CHECK-NEXT: }) : (tensor<?x?xf32, [@a, @b]>) -> tensor<?x?xf32, [@a, @b]>
// CHECK-NEXT: return %[[SORT]] : tensor<?x?xf32, [@a, @b]>
func.func @main(%x: tensor<?x?xf32, [@a, @b]>) -> tensor<?x?xf32> {
  %0 = "stablehlo.sort"(%x) <{dimension = -1 : i64}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %1 = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<?x?xf32, [@a, @b]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// Without an axis it is the last one.
func.func @main(%x: tensor<?x?xf32, [@a, @b]>) -> tensor<?x?xf32> {
  %0 = "stablehlo.sort"(%x) ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %1 = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<?x?xf32, [@a, @b]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.transpose
// CHECK: "stablehlo.sort"(%arg0) <{dimension = 1 : i64}>
