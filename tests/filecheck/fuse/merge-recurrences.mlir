// RUN: opt --pass-pipeline='annotate,simplify,fuse-groups,func.func(cse),merge-recurrences' --split-input-file %s | filecheck %s

// Two recurrences that do not need each other are one kernel, in the place of the second.
func.func @main(%x: tensor<?x8xf32, [@b, 8]>, %y: tensor<?x8xf32, [@b, 8]>, %u: tensor<8x8xf32>) -> (tensor<?x8xf32, [@b, 8]>, tensor<?x8xf32, [@b, 8]>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<10> : tensor<i32>
  %f:2 = stablehlo.while(%i = %zero, %s = %x) : tensor<i32>, tensor<?x8xf32, [@b, 8]>
   cond {
    %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %p = stablehlo.dot_general %s, %u, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@b, 8]>, tensor<8x8xf32>) -> tensor<?x8xf32, [@b, 8]>
    %a = stablehlo.tanh %p : tensor<?x8xf32, [@b, 8]>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %a : tensor<i32>, tensor<?x8xf32, [@b, 8]>
  }
  %g:2 = stablehlo.while(%i = %zero, %s = %y) : tensor<i32>, tensor<?x8xf32, [@b, 8]>
   cond {
    %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %p = stablehlo.dot_general %s, %u, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@b, 8]>, tensor<8x8xf32>) -> tensor<?x8xf32, [@b, 8]>
    %a = stablehlo.logistic %p : tensor<?x8xf32, [@b, 8]>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %a : tensor<i32>, tensor<?x8xf32, [@b, 8]>
  }
  return %f#1, %g#1 : tensor<?x8xf32, [@b, 8]>, tensor<?x8xf32, [@b, 8]>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[R:.*]]:2 = call @recurrence_0(%arg0, %arg2, %arg1, %arg2)
// CHECK-NEXT: return %[[R]]#0, %[[R]]#1
// CHECK: func.func private @recurrence_0({{.*}} attributes {disc.fusion = #disc.fusion<"recurrence", {loops = [{scalars = array<i64: 0>, states = array<i64: 1>, trip = 10 : i64}, {scalars = array<i64: 0>, states = array<i64: 1>, trip = 10 : i64}]}>} {
// CHECK: stablehlo.while
// CHECK: stablehlo.while
// CHECK: return %{{.*}}#1, %{{.*}}#1
// CHECK-NOT: func.func

// -----

// The second recurrence starts where the first one ends.
func.func @main(%x: tensor<?x8xf32, [@b, 8]>, %y: tensor<?x8xf32, [@b, 8]>, %u: tensor<8x8xf32>) -> (tensor<?x8xf32, [@b, 8]>, tensor<?x8xf32, [@b, 8]>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<10> : tensor<i32>
  %f:2 = stablehlo.while(%i = %zero, %s = %x) : tensor<i32>, tensor<?x8xf32, [@b, 8]>
   cond {
    %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %p = stablehlo.dot_general %s, %u, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@b, 8]>, tensor<8x8xf32>) -> tensor<?x8xf32, [@b, 8]>
    %a = stablehlo.tanh %p : tensor<?x8xf32, [@b, 8]>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %a : tensor<i32>, tensor<?x8xf32, [@b, 8]>
  }
  %g:2 = stablehlo.while(%i = %zero, %s = %f#1) : tensor<i32>, tensor<?x8xf32, [@b, 8]>
   cond {
    %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %p = stablehlo.dot_general %s, %u, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@b, 8]>, tensor<8x8xf32>) -> tensor<?x8xf32, [@b, 8]>
    %a = stablehlo.logistic %p : tensor<?x8xf32, [@b, 8]>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %a : tensor<i32>, tensor<?x8xf32, [@b, 8]>
  }
  return %f#1, %g#1 : tensor<?x8xf32, [@b, 8]>, tensor<?x8xf32, [@b, 8]>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[F:.*]] = call @recurrence_0(%arg0, %arg2)
// CHECK-NEXT: %[[G:.*]] = call @recurrence_1(%[[F]], %arg2)
// CHECK-NEXT: return %[[F]], %[[G]]

// -----

// A kernel that stands between them reads what the first one makes.
func.func @main(%x: tensor<?x8xf32, [@b, 8]>, %y: tensor<?x8xf32, [@b, 8]>, %u: tensor<8x8xf32>) -> (tensor<?x8xf32, [@b, 8]>, tensor<?x8xf32, [@b, 8]>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<10> : tensor<i32>
  %f:2 = stablehlo.while(%i = %zero, %s = %x) : tensor<i32>, tensor<?x8xf32, [@b, 8]>
   cond {
    %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %p = stablehlo.dot_general %s, %u, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@b, 8]>, tensor<8x8xf32>) -> tensor<?x8xf32, [@b, 8]>
    %a = stablehlo.tanh %p : tensor<?x8xf32, [@b, 8]>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %a : tensor<i32>, tensor<?x8xf32, [@b, 8]>
  }
  %t = stablehlo.sine %f#1 : tensor<?x8xf32, [@b, 8]>
  %g:2 = stablehlo.while(%i = %zero, %s = %y) : tensor<i32>, tensor<?x8xf32, [@b, 8]>
   cond {
    %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %p = stablehlo.dot_general %s, %u, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@b, 8]>, tensor<8x8xf32>) -> tensor<?x8xf32, [@b, 8]>
    %a = stablehlo.logistic %p : tensor<?x8xf32, [@b, 8]>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %a : tensor<i32>, tensor<?x8xf32, [@b, 8]>
  }
  return %t, %g#1 : tensor<?x8xf32, [@b, 8]>, tensor<?x8xf32, [@b, 8]>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[F:.*]] = call @recurrence_0(%arg0, %arg2)
// CHECK: %[[V:.*]] = stablehlo.dynamic_reshape %[[F]]
// CHECK: call @loop_1(%[[V]])
// CHECK: call @recurrence_2(%arg1, %arg2)
