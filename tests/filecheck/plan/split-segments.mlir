// RUN: opt --pass-pipeline='annotate,simplify,fuse,split-segments' --split-input-file %s | filecheck %s

// A size is read from an argument: what needs it runs in a second segment, and what does not comes before.
func.func @main(%x: tensor<?xf32, [@s]>, %n: tensor<i32>) -> (tensor<?xi32>, tensor<?xf32, [@s]>) {
  %r = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %i = stablehlo.dynamic_iota %r, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
  %j = stablehlo.negate %i : tensor<?xi32>
  %y = stablehlo.tanh %x : tensor<?xf32, [@s]>
  return %j, %y : tensor<?xi32>, tensor<?xf32, [@s]>
}
// CHECK: "disc.symbol"() {min = 0 : i64, name = "s"}
// CHECK: "disc.symbol"() {data, {{.*}}, name = "n0", segment = 1 : i64}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: "disc.bind"(%arg1) {symbols = [@n0]}
// CHECK-NEXT: %[[Y:.*]] = call @loop_1(%arg0) :
// CHECK-NEXT: %[[J:.*]] = call @loop_0() {disc.segment = 1 : i64}
// CHECK-NEXT: return %[[J]], %[[Y]]

// -----

// A size that is computed of data of such a size is of a third segment.
func.func @main(%x: tensor<?xi32, [@s]>) -> tensor<?xi32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %a = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<?xi32, [@s]>, tensor<i32>) -> tensor<i32>
  %a1 = stablehlo.reshape %a : (tensor<i32>) -> tensor<1xi32>
  %i = stablehlo.dynamic_iota %a1, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
  %b = stablehlo.reduce(%i init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<?xi32>, tensor<i32>) -> tensor<i32>
  %b1 = stablehlo.reshape %b : (tensor<i32>) -> tensor<1xi32>
  %j = stablehlo.dynamic_iota %b1, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
  return %j : tensor<?xi32>
}
// CHECK: name = "n0", segment = 1 : i64}
// CHECK: name = "n1", segment = 2 : i64}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[A:.*]] = call @row_reduce_0(%arg0) :
// CHECK-NEXT: "disc.bind"(%[[A]]) {symbols = [@n0]}
// CHECK-NEXT: %[[B:.*]] = call @row_reduce_1() {disc.segment = 1 : i64}
// CHECK-NEXT: "disc.bind"(%[[B]]) {disc.segment = 1 : i64, symbols = [@n1]}
// CHECK-NEXT: call @loop_2() {disc.segment = 2 : i64}

// -----

// All sizes are those of arguments: there is one segment.
func.func @main(%x: tensor<?xf32, [@s]>) -> (tensor<?xi32>, tensor<?xf32, [@s]>) {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32, [@s]>) -> tensor<i32>
  %r = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %i = stablehlo.dynamic_iota %r, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
  %y = stablehlo.tanh %x : tensor<?xf32, [@s]>
  return %i, %y : tensor<?xi32>, tensor<?xf32, [@s]>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: call @loop_0(%arg0) :
// CHECK-NEXT: call @loop_1() :
// CHECK-NEXT: return
// CHECK-NOT: segment
