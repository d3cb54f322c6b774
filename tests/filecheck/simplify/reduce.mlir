// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// A sum along a size of 1 is a reshape.
func.func @main(%x: tensor<?x1x4xf32, [@b, 1, 4]>) -> tensor<?x4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<?x1x4xf32, [@b, 1, 4]>, tensor<f32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.reduce(
// CHECK: stablehlo.dynamic_reshape %arg0, {{.*}} -> tensor<?x4xf32, [@b, 4]>

// -----

// One that does not start at the neutral element stays.
func.func @main(%x: tensor<?x1x4xf32, [@b, 1, 4]>) -> tensor<?x4xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %one) applies stablehlo.add across dimensions = [1] : (tensor<?x1x4xf32, [@b, 1, 4]>, tensor<f32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.reduce({{.*}}) applies stablehlo.add across dimensions = [1]

// -----

// Of two sizes only one is 1.
func.func @main(%x: tensor<?x1x4xf32, [@b, 1, 4]>) -> tensor<?xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1, 2] : (tensor<?x1x4xf32, [@b, 1, 4]>, tensor<f32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.reduce({{.*}}) applies stablehlo.maximum across dimensions = [1, 2]

// -----

// A maximum starts at minus infinity, a product at 1.
func.func @main(%x: tensor<?x1xf32, [@b, 1]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<?x1xf32, [@b, 1]>, tensor<f32>) -> tensor<?xf32>
  %1 = stablehlo.reduce(%x init: %one) applies stablehlo.multiply across dimensions = [1] : (tensor<?x1xf32, [@b, 1]>, tensor<f32>) -> tensor<?xf32>
  return %0, %1 : tensor<?xf32>, tensor<?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.reduce(
// CHECK: return

// -----

// Of whether an index lies inside, as a gather with a fill value has it: one test a row.
func.func @main(%x: tensor<?x1xi1, [@b, 1]>, %n: tensor<?x1xi32, [@b, 1]>) -> (tensor<?xi1>, tensor<?xi32>) {
  %true = stablehlo.constant dense<true> : tensor<i1>
  %least = stablehlo.constant dense<-2147483648> : tensor<i32>
  %0 = stablehlo.reduce(%x init: %true) applies stablehlo.and across dimensions = [1] : (tensor<?x1xi1, [@b, 1]>, tensor<i1>) -> tensor<?xi1>
  %1 = stablehlo.reduce(%n init: %least) applies stablehlo.maximum across dimensions = [1] : (tensor<?x1xi32, [@b, 1]>, tensor<i32>) -> tensor<?xi32>
  return %0, %1 : tensor<?xi1>, tensor<?xi32>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.reduce(
// CHECK: return

// -----

// Of integers, 0 is not where a maximum starts.
func.func @main(%n: tensor<?x1xi32, [@b, 1]>) -> tensor<?xi32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.reduce(%n init: %zero) applies stablehlo.maximum across dimensions = [1] : (tensor<?x1xi32, [@b, 1]>, tensor<i32>) -> tensor<?xi32>
  return %0 : tensor<?xi32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.reduce({{.*}}) applies stablehlo.maximum across dimensions = [1]
