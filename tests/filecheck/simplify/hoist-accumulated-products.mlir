// RUN: opt --pass-pipeline='annotate,hoist-accumulated-products' --split-input-file %s | filecheck %s

// The loop writes the computed factor of each step to an array, and the sum of the products is one product after it.
func.func @main(%xs: tensor<10x4x16xf32>, %h: tensor<4x8xf32>) -> (tensor<16x8xf32>, tensor<4x8xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %start = stablehlo.constant dense<0.0> : tensor<16x8xf32>
  %r:3 = stablehlo.while(%i = %zero, %acc = %start, %state = %h) : tensor<i32>, tensor<16x8xf32>, tensor<4x8xf32>
   cond {
    %go = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %s = stablehlo.dynamic_slice %xs, %i, %zero, %zero, sizes = [1, 4, 16] : (tensor<10x4x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x16xf32>
    %row = stablehlo.reshape %s : (tensor<1x4x16xf32>) -> tensor<4x16xf32>
    %new = stablehlo.tanh %state : tensor<4x8xf32>
    %p = stablehlo.dot_general %row, %new, contracting_dims = [0] x [0] : (tensor<4x16xf32>, tensor<4x8xf32>) -> tensor<16x8xf32>
    %sum = stablehlo.add %acc, %p : tensor<16x8xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %sum, %new : tensor<i32>, tensor<16x8xf32>, tensor<4x8xf32>
  }
  return %r#1, %r#2 : tensor<16x8xf32>, tensor<4x8xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[START:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<16x8xf32>
// CHECK: %[[R:.*]]:3 = stablehlo.while(%[[I:.*]] = %{{.*}}, %{{.*}} = %arg1, %[[ALL:.*]] = %{{.*}}) : tensor<i32>, tensor<4x8xf32>, tensor<10x4x8xf32>
// CHECK: %[[NEW:.*]] = stablehlo.tanh
// CHECK: %[[PART:.*]] = stablehlo.reshape %[[NEW]] : (tensor<4x8xf32>) -> tensor<1x4x8xf32>
// CHECK: stablehlo.dynamic_update_slice %[[ALL]], %[[PART]], %[[I]]
// CHECK: stablehlo.return
// CHECK: %[[P:.*]] = stablehlo.dot_general %arg0, %[[R]]#2, contracting_dims = [0, 1] x [0, 1]
// CHECK-NEXT: %[[SUM:.*]] = stablehlo.add %[[START]], %[[P]]
// CHECK-NEXT: return %[[SUM]], %[[R]]#1

// -----

// The state of the next step is computed from the sum: it is needed in each of them.
func.func @main(%xs: tensor<10x4x16xf32>, %h: tensor<4x16xf32>) -> tensor<16x16xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %start = stablehlo.constant dense<0.0> : tensor<16x16xf32>
  %r:3 = stablehlo.while(%i = %zero, %acc = %start, %state = %h) : tensor<i32>, tensor<16x16xf32>, tensor<4x16xf32>
   cond {
    %go = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %s = stablehlo.dynamic_slice %xs, %i, %zero, %zero, sizes = [1, 4, 16] : (tensor<10x4x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x16xf32>
    %row = stablehlo.reshape %s : (tensor<1x4x16xf32>) -> tensor<4x16xf32>
    %t = stablehlo.tanh %state : tensor<4x16xf32>
    %p = stablehlo.dot_general %row, %t, contracting_dims = [0] x [0] : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<16x16xf32>
    %sum = stablehlo.add %acc, %p : tensor<16x16xf32>
    %new = stablehlo.dot_general %row, %sum, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %sum, %new : tensor<i32>, tensor<16x16xf32>, tensor<4x16xf32>
  }
  return %r#1 : tensor<16x16xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[R:.*]]:3 = stablehlo.while(%{{.*}} = %{{.*}}, %[[ACC:.*]] = %{{.*}}, %{{.*}} = %arg1)
// CHECK: %[[P:.*]] = stablehlo.dot_general %{{.*}}, %{{.*}}, contracting_dims = [0] x [0]
// CHECK: stablehlo.add %[[ACC]], %[[P]]
// CHECK-NOT: stablehlo.dynamic_update_slice
// CHECK: return %[[R]]#1

// -----

// The loop starts at the second row and takes the last one twice: the array does not have the rows of all steps in order.
func.func @main(%xs: tensor<10x4x16xf32>, %y: tensor<4x8xf32>) -> tensor<16x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %start = stablehlo.constant dense<0.0> : tensor<16x8xf32>
  %r:2 = stablehlo.while(%i = %zero, %acc = %start) : tensor<i32>, tensor<16x8xf32>
   cond {
    %go = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %at = stablehlo.add %i, %one : tensor<i32>
    %s = stablehlo.dynamic_slice %xs, %at, %zero, %zero, sizes = [1, 4, 16] : (tensor<10x4x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x16xf32>
    %row = stablehlo.reshape %s : (tensor<1x4x16xf32>) -> tensor<4x16xf32>
    %t = stablehlo.tanh %y : tensor<4x8xf32>
    %p = stablehlo.dot_general %row, %t, contracting_dims = [0] x [0] : (tensor<4x16xf32>, tensor<4x8xf32>) -> tensor<16x8xf32>
    %sum = stablehlo.add %acc, %p : tensor<16x8xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %sum : tensor<i32>, tensor<16x8xf32>
  }
  return %r#1 : tensor<16x8xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[R:.*]]:2 = stablehlo.while(%{{.*}} = %{{.*}}, %[[ACC:.*]] = %{{.*}})
// CHECK: %[[P:.*]] = stablehlo.dot_general %{{.*}}, %{{.*}}, contracting_dims = [0] x [0]
// CHECK: stablehlo.add %[[ACC]], %[[P]]
// CHECK-NOT: stablehlo.dot_general
// CHECK: return %[[R]]#1
