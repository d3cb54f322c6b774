// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// The ops of the body on whole tensors; its constants are broadcast.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xf32, [@b, @s]>,
// CHECK-SAME: %[[B:\w+]]: tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xi1, [@b, @s]> {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<2.000000e+00> : tensor<f32>
// CHECK-NOT: stablehlo.map
// CHECK: %[[SHAPE:\w+]] = "disc.shape"() {dims = [@b, @s]} : () -> tensor<2xi64>
// CHECK-NEXT: %[[BROADCAST:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT]], %[[SHAPE]], dims = []
// CHECK-SAME: : (tensor<f32>, tensor<2xi64>) -> tensor<?x?xf32, [@b, @s]>
// CHECK-NEXT: %[[MULTIPLY:\w+]] = stablehlo.multiply %[[A]], %[[BROADCAST]] : tensor<?x?xf32, [@b, @s]>
// CHECK-NEXT: %[[COMPARE:\w+]] = stablehlo.compare LT, %[[MULTIPLY]], %[[B]]
// CHECK-SAME: : (tensor<?x?xf32, [@b, @s]>, tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xi1, [@b, @s]>
// CHECK-NEXT: return %[[COMPARE]] : tensor<?x?xi1, [@b, @s]>
func.func @main(%x: tensor<?x?xf32, [@b, @s]>, %y: tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xi1> {
  %0 = "stablehlo.map"(%x, %y) <{dimensions = array<i64: 0, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %two = stablehlo.constant dense<2.0> : tensor<f32>
    %1 = stablehlo.multiply %a, %two : tensor<f32>
    %2 = stablehlo.compare LT, %1, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }) : (tensor<?x?xf32, [@b, @s]>, tensor<?x?xf32, [@b, @s]>) -> tensor<?x?xi1>
  return %0 : tensor<?x?xi1>
}

// -----

// A body that only has a constant is that constant everywhere.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %{{\w+}}: tensor<?xf32, [@n]>) -> tensor<?xf32, [@n]> {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<3.000000e+00> : tensor<f32>
// CHECK-NOT: stablehlo.map
// CHECK: %[[SHAPE:\w+]] = "disc.shape"() {dims = [@n]} : () -> tensor<1xi64>
// CHECK-NEXT: %[[BROADCAST:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT]], %[[SHAPE]], dims = []
// CHECK-SAME: : (tensor<f32>, tensor<1xi64>) -> tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[BROADCAST]] : tensor<?xf32, [@n]>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %0 = "stablehlo.map"(%x) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>):
    %1 = stablehlo.constant dense<3.0> : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<?xf32, [@n]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A body that returns its argument is the operand.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>) -> tensor<?xf32, [@n]> {
// CHECK-NEXT: return %[[A]] : tensor<?xf32, [@n]>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %0 = "stablehlo.map"(%x) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>):
    stablehlo.return %a : tensor<f32>
  }) : (tensor<?xf32, [@n]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A constant from before the map is broadcast too.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?xf32, [@n]>) -> tensor<?xf32, [@n]> {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<4.000000e+00> : tensor<f32>
// CHECK-NOT: stablehlo.map
// CHECK: %[[SHAPE:\w+]] = "disc.shape"() {dims = [@n]} : () -> tensor<1xi64>
// CHECK-NEXT: %[[BROADCAST:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT]], %[[SHAPE]], dims = []
// CHECK-SAME: : (tensor<f32>, tensor<1xi64>) -> tensor<?xf32, [@n]>
// CHECK-NEXT: %[[ADD:\w+]] = stablehlo.add %[[A]], %[[BROADCAST]] : tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[ADD]] : tensor<?xf32, [@n]>
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %four = stablehlo.constant dense<4.0> : tensor<f32>
  %0 = "stablehlo.map"(%x) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>):
    %1 = stablehlo.add %a, %four : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<?xf32, [@n]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Complex numbers in a body become two parts as elsewhere.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x2xf32, [@n, 2]>) -> tensor<?xf32, [@n]> {
// CHECK-NOT: stablehlo.map
// CHECK: %[[SLICE:\w+]] = stablehlo.real_dynamic_slice %[[A]], %{{\w+}}, %{{\w+}}, %{{\w+}}
// CHECK-SAME: : (tensor<?x2xf32, [@n, 2]>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x1xf32, [@n, 1]>
// CHECK-NOT: stablehlo.map
// CHECK: %[[RESHAPE:\w+]] = stablehlo.dynamic_reshape %[[SLICE]], %{{\w+}}
// CHECK-SAME: : (tensor<?x1xf32, [@n, 1]>, tensor<1xi64>) -> tensor<?xf32, [@n]>
// CHECK-NEXT: return %[[RESHAPE]] : tensor<?xf32, [@n]>
func.func @main(%x: tensor<?xcomplex<f32>, [@n]>) -> tensor<?xf32> {
  %0 = "stablehlo.map"(%x) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<complex<f32>>):
    %1 = stablehlo.imag %a : (tensor<complex<f32>>) -> tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<?xcomplex<f32>, [@n]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A body cannot use a value of the program.
// CHECK-LABEL: error: 1 unsupported construct(s):
// CHECK-NEXT: stablehlo.map at line {{[0-9]+}}: a body that uses values from outside has no lowering
func.func @main(%x: tensor<?xf32, [@n]>, %y: tensor<f32>) -> tensor<?xf32> {
  %0 = "stablehlo.map"(%x) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>):
    %1 = stablehlo.add %a, %y : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<?xf32, [@n]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A body has scalar ops only.
// CHECK-LABEL: error: 1 unsupported construct(s):
// CHECK-NEXT: stablehlo.map at line {{[0-9]+}}: a body with stablehlo.reshape has no lowering
func.func @main(%x: tensor<?xf32, [@n]>) -> tensor<?xf32> {
  %0 = "stablehlo.map"(%x) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>):
    %1 = stablehlo.reshape %a : (tensor<f32>) -> tensor<1xf32>
    %2 = stablehlo.reshape %1 : (tensor<1xf32>) -> tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<?xf32, [@n]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
