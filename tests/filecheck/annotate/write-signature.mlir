// RUN: opt --pass-pipeline='set-argument-sizes,infer-sizes,write-signature' --split-input-file %s | filecheck %s

// The symbol that two arguments share, and the sizes of the result, are in the signature.
func.func @main(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> tensor<?x8xf32> {
  %0 = stablehlo.concatenate %x, %y, dim = 1 : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
// CHECK-LABEL: module attributes {
// CHECK: "disc.signature"() {arguments = [{dims = [@arg0_d0, 4], dtype = "f32", path = "args[0]"}, {dims = [@arg0_d0, 4], dtype = "f32", path = "args[1]"}],
// CHECK-SAME: kept = array<i64: 0, 1>, name = "main", results = [{dims = [@arg0_d0, 8], dtype = "f32", path = "result"}]}

// -----

// The size of a result is an expression; a symbol of an argument that nothing reads stays.
func.func @main(%x: tensor<?x2xf32, [@b, 2]>, %u: tensor<?xi8, [@u]>) -> tensor<?xf32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x2xf32, [@b, 2]>) -> tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %0 = stablehlo.multiply %n, %two : tensor<i32>
  %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
  %2 = stablehlo.dynamic_reshape %x, %1 : (tensor<?x2xf32, [@b, 2]>, tensor<1xi32>) -> tensor<?xf32>
  return %2 : tensor<?xf32>
}
// CHECK-LABEL: module attributes {
// CHECK: "disc.signature"() {arguments = [{dims = [@b, 2], dtype = "f32", path = "args[0]"}, {dims = [@u], dtype = "i8", path = "args[1]"}],
// CHECK-SAME: results = [{dims = [@"2*b"], dtype = "f32", path = "result"}]}

// -----

// An argument whose symbol was found to be a number has that number in the signature.
func.func @main(%x: tensor<?xf32, [@n]>, %w: tensor<5xf32>) -> (tensor<5xf32>, tensor<5xi1>) {
  %0 = stablehlo.add %x, %w : (tensor<?xf32, [@n]>, tensor<5xf32>) -> tensor<5xf32>
  %1 = stablehlo.compare LT, %0, %w : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xi1>
  return %0, %1 : tensor<5xf32>, tensor<5xi1>
}
// CHECK-LABEL: module attributes {
// CHECK: "disc.signature"() {arguments = [{dims = [5], dtype = "f32", path = "args[0]"}, {dims = [5], dtype = "f32", path = "args[1]"}],
// CHECK-SAME: results = [{dims = [5], dtype = "f32", path = "result[0]"}, {dims = [5], dtype = "i1", path = "result[1]"}]}

// -----

// Of a scalar there is nothing to write; the signature is as the import has made it.
func.func @main(%x: tensor<?xf32, [@b]>, %s: tensor<f64>) -> tensor<f64> {
  %0 = stablehlo.negate %s : tensor<f64>
  return %0 : tensor<f64>
}
// CHECK-LABEL: module attributes {
// CHECK: "disc.signature"() {arguments = [{dims = [@b], dtype = "f32", path = "args[0]"}, {dims = [], dtype = "f64", path = "args[1]"}],
// CHECK-SAME: results = [{dims = [], dtype = "f64", path = "result"}]}
