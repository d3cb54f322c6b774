// RUN: opt --pass-pipeline='annotate,decompose-complex' --split-input-file %s | filecheck %s

// A square of complex numbers is products of their parts.
func.func @main(%a: tensor<?xf32, [@n]>, %b: tensor<?xf32, [@n]>) -> (tensor<?xf32>, tensor<?xf32>) {
  %x = stablehlo.complex %a, %b : (tensor<?xf32, [@n]>, tensor<?xf32, [@n]>) -> tensor<?xcomplex<f32>>
  %y = stablehlo.multiply %x, %x : tensor<?xcomplex<f32>>
  %re = stablehlo.real %y : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  %im = stablehlo.imag %y : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  return %re, %im : tensor<?xf32>, tensor<?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[AA:.*]] = stablehlo.multiply %arg0, %arg0 : tensor<?xf32, [@n]>
// CHECK-NEXT: %[[BB:.*]] = stablehlo.multiply %arg1, %arg1
// CHECK-NEXT: %[[RE:.*]] = stablehlo.subtract %[[AA]], %[[BB]]
// CHECK-NEXT: %[[AB:.*]] = stablehlo.multiply %arg0, %arg1
// CHECK-NEXT: %[[BA:.*]] = stablehlo.multiply %arg1, %arg0
// CHECK-NEXT: %[[IM:.*]] = stablehlo.add %[[AB]], %[[BA]]
// CHECK-NEXT: return %[[RE]], %[[IM]]

// -----

// In the buffers of arguments and results the parts alternate: they are taken apart once, and put together at the end.
func.func @main(%x: tensor<3xcomplex<f32>>) -> tensor<3xcomplex<f32>> {
  %0 = stablehlo.reverse %x, dims = [0] : tensor<3xcomplex<f32>>
  return %0 : tensor<3xcomplex<f32>>
}
// CHECK-LABEL: func.func @main(%arg0: tensor<3x2xf32>) -> tensor<3x2xf32> {
// CHECK-NEXT: %[[S0:.*]] = stablehlo.slice %arg0 [0:3, 0:1]
// CHECK-NEXT: %[[RE:.*]] = stablehlo.reshape %[[S0]] : (tensor<3x1xf32>) -> tensor<3xf32>
// CHECK-NEXT: %[[S1:.*]] = stablehlo.slice %arg0 [0:3, 1:2]
// CHECK-NEXT: %[[IM:.*]] = stablehlo.reshape %[[S1]] : (tensor<3x1xf32>) -> tensor<3xf32>
// CHECK-NEXT: stablehlo.reverse %[[RE]], dims = [0] : tensor<3xf32>
// CHECK-NEXT: stablehlo.reverse %[[IM]], dims = [0] : tensor<3xf32>
// CHECK: stablehlo.concatenate {{.*}} dim = 1 : (tensor<3x1xf32>, tensor<3x1xf32>) -> tensor<3x2xf32>

// -----

// A loop carries both parts.
func.func @main(%a: tensor<3xf32>, %k: tensor<i32>) -> tensor<3xf32> {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %x = stablehlo.complex %a, %a : tensor<3xcomplex<f32>>
  %r:2 = stablehlo.while(%i = %k, %acc = %x) : tensor<i32>, tensor<3xcomplex<f32>>
   cond {
    %go = stablehlo.compare GT, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %product = stablehlo.multiply %acc, %x : tensor<3xcomplex<f32>>
    %next = stablehlo.subtract %i, %one : tensor<i32>
    stablehlo.return %next, %product : tensor<i32>, tensor<3xcomplex<f32>>
  }
  %im = stablehlo.imag %r#1 : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
  return %im : tensor<3xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[R:.*]]:3 = stablehlo.while(%{{.*}} = %arg1, %{{.*}} = %arg0, %{{.*}} = %arg0) : tensor<i32>, tensor<3xf32>, tensor<3xf32>
// CHECK: %[[RE:.*]] = stablehlo.subtract %{{.*}} : tensor<3xf32>
// CHECK: %[[IM:.*]] = stablehlo.add %{{.*}} : tensor<3xf32>
// CHECK: stablehlo.return %{{.*}}, %[[RE]], %[[IM]] : tensor<i32>, tensor<3xf32>, tensor<3xf32>
// CHECK: return %[[R]]#2

// -----

// Two columns of real numbers are not the two parts of complex ones.
func.func @main(%x: tensor<?x2xf32, [@n, 2]>) -> tensor<?x2xf32> {
  %0 = stablehlo.multiply %x, %x : (tensor<?x2xf32, [@n, 2]>, tensor<?x2xf32, [@n, 2]>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}
// CHECK-LABEL: func.func @main(%arg0: tensor<?x2xf32, [@n, 2]>) -> tensor<?x2xf32, [@n, 2]> {
// CHECK-NEXT: %[[P:.*]] = stablehlo.multiply %arg0, %arg0 : tensor<?x2xf32, [@n, 2]>
// CHECK-NEXT: return %[[P]]
