// RUN: opt --pass-pipeline='annotate,materialize-shapes,simplify-control-flow' --split-input-file %s | filecheck %s

// Once a branch that the sizes decide is opened, a carried value stays as it is, and the loop does not carry it.
func.func @main(%x: tensor<?xf32, [@b]>, %y: tensor<?xf32, [@b]>) -> (tensor<?xf32, [@b]>, tensor<?xf32, [@b]>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32, [@b]>) -> tensor<i32>
  %known = stablehlo.compare GE, %n, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %r:3 = stablehlo.while(%i = %zero, %acc = %x, %same = %y) : tensor<i32>, tensor<?xf32, [@b]>, tensor<?xf32, [@b]>
   cond {
    %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %sum = stablehlo.add %acc, %same : tensor<?xf32, [@b]>
    %kept = "stablehlo.if"(%known) ({
      stablehlo.return %same : tensor<?xf32, [@b]>
    }, {
      stablehlo.return %sum : tensor<?xf32, [@b]>
    }) : (tensor<i1>) -> tensor<?xf32, [@b]>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %sum, %kept : tensor<i32>, tensor<?xf32, [@b]>, tensor<?xf32, [@b]>
  }
  return %r#1, %r#2 : tensor<?xf32, [@b]>, tensor<?xf32, [@b]>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[R:.*]]:2 = stablehlo.while(%{{.*}} = %{{.*}}, %[[ACC:.*]] = %arg0)
// CHECK: %[[SUM:.*]] = stablehlo.add %[[ACC]], %arg1
// CHECK-NOT: stablehlo.if
// CHECK: stablehlo.return %{{.*}}, %[[SUM]]
// CHECK: return %[[R]]#1, %arg1

// -----

// Values that change places are not the same in each iteration: both are carried.
func.func @main(%x: tensor<?xf32, [@b]>, %y: tensor<?xf32, [@b]>) -> tensor<?xf32, [@b]> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %a = %x, %b = %y) : tensor<i32>, tensor<?xf32, [@b]>, tensor<?xf32, [@b]>
   cond {
    %go = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %b, %a : tensor<i32>, tensor<?xf32, [@b]>, tensor<?xf32, [@b]>
  }
  return %r#1 : tensor<?xf32, [@b]>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[R:.*]]:3 = stablehlo.while(%{{.*}} = %{{.*}}, %[[A:.*]] = %arg0, %[[B:.*]] = %arg1)
// CHECK: stablehlo.return %{{.*}}, %[[B]], %[[A]]
// CHECK: return %[[R]]#1

// -----

// A constant chooses the last branch, also where it is no branch's number; the other branches are gone.
func.func @main(%x: tensor<?xf32, [@b]>) -> tensor<?xf32, [@b]> {
  %seven = stablehlo.constant dense<7> : tensor<i32>
  %0 = "stablehlo.case"(%seven) ({
    %1 = stablehlo.tanh %x : tensor<?xf32, [@b]>
    stablehlo.return %1 : tensor<?xf32, [@b]>
  }, {
    %1 = stablehlo.negate %x : tensor<?xf32, [@b]>
    stablehlo.return %1 : tensor<?xf32, [@b]>
  }) : (tensor<i32>) -> tensor<?xf32, [@b]>
  return %0 : tensor<?xf32, [@b]>
}
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.case
// CHECK-NOT: stablehlo.tanh
// CHECK: %[[N:.*]] = stablehlo.negate %arg0
// CHECK-NEXT: return %[[N]]

// -----

// Data chooses: all branches stay.
func.func @main(%x: tensor<?xf32, [@b]>, %which: tensor<i32>) -> tensor<?xf32, [@b]> {
  %0 = "stablehlo.case"(%which) ({
    %1 = stablehlo.tanh %x : tensor<?xf32, [@b]>
    stablehlo.return %1 : tensor<?xf32, [@b]>
  }, {
    %1 = stablehlo.negate %x : tensor<?xf32, [@b]>
    stablehlo.return %1 : tensor<?xf32, [@b]>
  }) : (tensor<i32>) -> tensor<?xf32, [@b]>
  return %0 : tensor<?xf32, [@b]>
}
// CHECK-LABEL: func.func @main
// CHECK: %[[C:.*]] = "stablehlo.case"(%arg1)
// CHECK: stablehlo.tanh %arg0
// CHECK: stablehlo.negate %arg0
// CHECK: return %[[C]]

// -----

// A constant that is cut to 32 bits before it chooses: 2^32 is 0 then.
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<4294967296> : tensor<i64>
  %i = stablehlo.convert %c : (tensor<i64>) -> tensor<i32>
  %r = "stablehlo.case"(%i) ({
    %a = stablehlo.sine %x : tensor<4xf32>
    stablehlo.return %a : tensor<4xf32>
  }, {
    %b = stablehlo.cosine %x : tensor<4xf32>
    stablehlo.return %b : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.sine
// CHECK-NOT: stablehlo.cosine
// CHECK: return
