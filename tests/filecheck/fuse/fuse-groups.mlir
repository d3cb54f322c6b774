// RUN: opt --pass-pipeline='annotate,simplify,fuse-groups' --split-input-file %s | filecheck %s

// A chain of elementwise ops is one loop, over all elements in a row.
func.func @main(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = stablehlo.add %x, %y : tensor<?x4xf32>
  %1 = stablehlo.tanh %0 : tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: call @loop_0
// CHECK-NOT: call
// CHECK: return
// CHECK: func.func private @loop_0({{.*}}) {{.*}} attributes {disc.fusion = #disc.fusion<"loop", {collapsed}>} {
// CHECK-NEXT: stablehlo.add
// CHECK-NEXT: stablehlo.tanh
// CHECK-NEXT: return

// -----

// A row reduction and what is computed of it are one kernel over rows.
func.func @main(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>
  %m = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?xf32>) -> tensor<i32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %m1 = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
  %d = stablehlo.concatenate %n1, %m1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %b = stablehlo.dynamic_broadcast_in_dim %s, %d, dims = [0] : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  %r = stablehlo.divide %x, %b : tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: call @row_reduce_0
// CHECK-NOT: call
// CHECK: return
// CHECK: #disc.fusion<"row_reduce", {{.*}}columns = 1

// -----

// A matrix product is a fusion by itself here.
func.func @main(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %1 = stablehlo.tanh %0 : tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[P:.*]] = call @dot_0
// CHECK: call @loop_1
// CHECK: #disc.fusion<"dot", {product =

// -----

// Reductions down the columns of one array are one kernel, and so are those along its rows.
func.func @main(%x: tensor<?x?xf32>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>
  %1 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>
  %2 = stablehlo.reduce(%x init: %z) applies stablehlo.maximum across dimensions = [0] : (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>
  %3 = stablehlo.reduce(%x init: %z) applies stablehlo.maximum across dimensions = [1] : (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>
  return %0, %1, %2, %3 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: call
// CHECK-NOT: call
// CHECK: return
// CHECK-DAG: #disc.fusion<"reduce", {by_columns}>
// CHECK-DAG: #disc.fusion<"row_reduce", {{.*}}columns = 1

// -----

// A product stands between two loops over one array: a result of the second would be kept while it runs.
func.func @main(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) {
  %0 = stablehlo.tanh %x : tensor<?x8xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %2 = stablehlo.abs %x : tensor<?x8xf32>
  return %0, %1, %2 : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-COUNT-3: call
// CHECK: return
